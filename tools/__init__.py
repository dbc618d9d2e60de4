"""What the Makefile and the build use."""
