"""`ttsr-proxy rules`: what rules there are, whether they are sound, and what they match."""

from __future__ import annotations

import click

from ttsr_proxy.cli.rules.check import check_rules
from ttsr_proxy.cli.rules.draft import draft_rule_file
from ttsr_proxy.cli.rules.listing import list_rules, show_rule
from ttsr_proxy.cli.rules.scan import scan_files
from ttsr_proxy.cli.rules.trial import test_rules


@click.group(commands=(list_rules, show_rule, check_rules, test_rules, scan_files, draft_rule_file))
def rules() -> None:
    """See what rules there are, check them, try them, and draft new ones."""
