"""`python -m ttsr_proxy`: the command line."""

from ttsr_proxy.cli import main

if __name__ == "__main__":
    main(prog_name="ttsr-proxy")
