"""Keys that tell tenants apart and tell nothing else."""

from __future__ import annotations

from ttsr_proxy.sessions.tenant import tenant_key


def test_a_key_depends_on_secret_credential_and_project() -> None:
    keys = {
        tenant_key(secret, credential, project)
        for secret in (b"s" * 32, b"t" * 32)
        for credential in ("sk-a", "sk-b", "")
        for project in ("p", "q")
    }
    assert len(keys) == 12
    assert tenant_key(b"s" * 32, "sk-a", "p") in keys


def test_parts_do_not_run_into_each_other() -> None:
    assert tenant_key(b"s", "ab", "c") != tenant_key(b"s", "a", "bc")


def test_a_key_does_not_hold_the_credential() -> None:
    assert "secret" not in tenant_key(b"s", "secret", "p")


def test_any_header_value_has_a_key() -> None:
    assert tenant_key(b"s", "\ud800", "p")
