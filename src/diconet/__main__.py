"""`python -m diconet` is `diconet`."""

from diconet.cli import main

main()
