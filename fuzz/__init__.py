"""Random input for the parser, the commands, the loader of append-only files, scripts, and disks.

``python -m fuzz dispatcher --seconds 60`` makes inputs, runs them, and ends with the first that
breaks an invariant, which it writes into ``fuzz/corpus/dispatcher``; ``--replay FILE`` runs one
again. What each target promises stands at the top of its module, in ``fuzz/targets``. Inputs in
the corpus are replayed by the tests, and are what new inputs are made from.
"""
