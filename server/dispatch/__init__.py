"""From a request to its reply: look up, check, run, let the effects have their consequences."""
