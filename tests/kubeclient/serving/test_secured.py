"""The server over TLS: certificates, their rotation, and the answers to requests with and without a token."""

import asyncio
import os
import ssl
from contextlib import asynccontextmanager

import aiohttp
import pytest

from eclectus.kubeclient.addresses import bound_address, listen
from eclectus.kubeclient.api_errors import CredentialsError, UnsureError
from eclectus.kubeclient.serving import certificate as certificates_of_servers
from eclectus.kubeclient.serving import health
from eclectus.kubeclient.serving.access import AccessControl
from eclectus.kubeclient.serving.certificate import ServingCertificate, certificate_of, check_files
from eclectus.kubeclient.serving.server_settings import ServerSettings
from reviewing_api import ReviewingApi

DELEGATED = ServerSettings(authentication="delegated")
CHECKS = ("/livez", "/readyz", "/healthz")
CONNECTIONS = 100


@asynccontextmanager
async def serving(certificate, api=None):
    """The base URL of a server with this certificate; `api` answers reviews."""
    access = None if api is None else AccessControl(api)
    speeds = {"/speeds": lambda _: [b"[]"]}
    app = health.application({"loop": lambda: ""}, {}, lambda: b"up 1\n", speeds, access)
    listening = listen("127.0.0.1", 0)
    async with health.serving(app, listening, certificate):
        yield f"https://{bound_address(listening)}"


async def get(url, token="", trusted=None):
    """(status, headers, body) over a new connection; without an authority nothing is verified."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, headers=headers, ssl=trusted or False) as answer,
    ):
        body = await (answer.json() if answer.content_type == "application/json" else answer.text())
        return answer.status, answer.headers, body


def files(folder, pem):
    """The settings for a certificate in two files, as a mounted Secret has it."""
    certificate, mark, key = pem.partition(b"-----BEGIN PRIVATE KEY-----")
    for name, content in (("tls.crt", certificate), ("tls.key", mark + key)):
        (folder / f"{name}.new").write_bytes(content)
        os.replace(folder / f"{name}.new", folder / name)
    return ServerSettings(tls_cert_file=str(folder / "tls.crt"), tls_private_key_file=str(folder / "tls.key"))


def test_without_files_the_certificate_is_self_signed():
    async def work():
        api = ReviewingApi({"good": "prometheus"}, {"prometheus": ["/metrics"]})
        async with serving(certificate_of(DELEGATED), api) as base:
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await get(f"{base}/metrics", "good", ssl.create_default_context())
            return await get(f"{base}/metrics", "good")

    status, _, body = asyncio.run(work())
    assert (status, body) == (200, "up 1\n")


def test_with_no_authentication_and_no_files_it_is_plain_http():
    assert certificate_of(ServerSettings()) is None


def test_requests_are_answered_as_the_api_server_answers():
    async def work():
        tokens = {"good": "prometheus", "other": "other"}
        async with serving(
            certificate_of(DELEGATED), ReviewingApi(tokens, {"prometheus": ["/metrics"]})
        ) as base:
            return [
                await get(base + path, token)
                for path, token in (("/metrics", ""), ("/metrics", "other"), ("/speeds", "good"), ("/no", ""))
            ]

    unknown, other, elsewhere, missing = asyncio.run(work())
    assert unknown[0] == 401
    assert unknown[2] == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }
    assert (other[0], other[2]["reason"]) == (403, "Forbidden")
    assert (elsewhere[0], elsewhere[2]["message"]) == (
        403,
        'forbidden: User "prometheus" cannot get path "/speeds"',
    )
    assert missing[0] == 404


def test_a_scheme_other_than_bearer_is_no_token():
    async def work():
        api = ReviewingApi()
        async with serving(certificate_of(DELEGATED), api) as base, aiohttp.ClientSession() as session:
            basic = {"Authorization": "Basic YTpi"}
            async with session.get(f"{base}/metrics", headers=basic, ssl=False) as answer:
                return answer.status, api.asked.total()

    assert asyncio.run(work()) == (401, 0)


def test_health_checks_wait_for_no_review():
    async def work():
        api = ReviewingApi()
        api.gate.clear()
        async with serving(certificate_of(DELEGATED), api) as base:
            waiting = asyncio.create_task(get(f"{base}/metrics", "made-up"))
            async with asyncio.timeout(30):
                while not api.asked:  # noqa: ASYNC110 — the fake sets no event
                    await asyncio.sleep(0.01)
                checked = [(await get(base + path))[0] for path in CHECKS]
            assert not waiting.done()
            api.gate.set()
            return checked, (await waiting)[0], api.asked.total()

    assert asyncio.run(work()) == ([200, 200, 200], 401, 1)


def test_an_api_server_that_cannot_be_asked_is_a_500_and_livez_answers():
    async def work():
        api = ReviewingApi()
        api.error = UnsureError("POST", message="no answer")
        async with serving(certificate_of(DELEGATED), api) as base:
            return await get(f"{base}/metrics", "any"), [(await get(base + path))[0] for path in CHECKS]

    (status, _, body), checked = asyncio.run(work())
    assert (status, body["reason"], checked) == (500, "InternalError", [200, 200, 200])


def test_most_of_a_thousand_made_up_tokens_are_answered_with_429():
    async def work():
        api = ReviewingApi()
        async with serving(certificate_of(DELEGATED), api) as base, aiohttp.ClientSession() as session:

            async def ask(number):
                bearer = {"Authorization": f"Bearer made-up-{number}"}
                async with session.get(f"{base}/metrics", headers=bearer, ssl=False) as answer:
                    return answer.status, answer.headers.get("Retry-After")

            found = await asyncio.gather(*(ask(number) for number in range(1000)))
            return found, (await get(f"{base}/livez"))[0], api.asked.total()

    found, livez, asked = asyncio.run(work())
    assert set(found) == {(401, None), (429, "1")}
    assert livez == 200
    assert asked == found.count((401, None)) < 500


# -- certificates of files -----------------------------------------------------------------------------


def test_a_rotated_certificate_is_served_to_new_connections(tmp_path, certificates, monkeypatch):
    monkeypatch.setattr(certificates_of_servers, "REREAD_SECONDS", 0.01)
    trusted = ssl.create_default_context(cadata=certificates.authority.decode())

    async def work():
        async with (
            serving(certificate_of(files(tmp_path, certificates.expired))) as base,
            asyncio.timeout(30),
        ):
            with pytest.raises(aiohttp.ClientConnectorCertificateError, match="expired"):
                await get(f"{base}/livez", trusted=trusted)
            files(tmp_path, certificates.good)
            while True:  # every connection until then is served with one certificate or the other
                try:
                    return (await get(f"{base}/livez", trusted=trusted))[0]
                except aiohttp.ClientConnectorCertificateError:
                    await asyncio.sleep(0.01)

    assert asyncio.run(work()) == 200


def test_no_connection_fails_while_certificates_are_replaced_again_and_again(tmp_path, monkeypatch):
    monkeypatch.setattr(certificates_of_servers, "REREAD_SECONDS", 0.0)
    pairs = [certificates_of_servers.self_signed() for _ in range(2)]

    async def work():
        async with serving(certificate_of(files(tmp_path, pairs[0]))) as base, asyncio.timeout(60):
            for number in range(CONNECTIONS):
                files(tmp_path, pairs[number % 2])
                assert (await get(f"{base}/livez"))[0] == 200

    asyncio.run(work())


@pytest.mark.parametrize("damage", ["no key", "another key", "not PEM"])
def test_a_damaged_replacement_leaves_the_old_one_in_use(tmp_path, certificates, caplog, monkeypatch, damage):
    monkeypatch.setattr(certificates_of_servers, "REREAD_SECONDS", 0.01)
    trusted = ssl.create_default_context(cadata=certificates.authority.decode())

    async def work():
        async with serving(certificate_of(files(tmp_path, certificates.good))) as base:
            if damage == "no key":
                (tmp_path / "tls.key").unlink()
            elif damage == "another key":
                (tmp_path / "tls.key").write_bytes(certificates.expired)
            else:
                (tmp_path / "tls.crt").write_text("nothing")
            async with asyncio.timeout(30):
                while "the old certificate of the server stays in use" not in caplog.text:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            return (await get(f"{base}/livez", trusted=trusted))[0]

    assert asyncio.run(work()) == 200


@pytest.mark.parametrize("source", ["self-signed", "files", "files with the chain"])
def test_the_fingerprint_is_that_of_the_certificate_a_client_gets(tmp_path, certificates, source):
    pem = certificates.good if source == "files" else chained(certificates)
    settings = DELEGATED if source == "self-signed" else files(tmp_path, pem)
    used = certificate_of(settings)

    async def work():
        known = aiohttp.Fingerprint(bytes.fromhex(used.fingerprint))
        async with serving(used) as base:
            return (await get(f"{base}/livez", trusted=known))[0]

    assert asyncio.run(work()) == 200


def chained(certificates):
    """The certificate, its authority's, and the key."""
    certificate, mark, key = certificates.good.partition(b"-----BEGIN PRIVATE KEY-----")
    return certificate + certificates.authority + mark + key


def test_files_that_cannot_be_read_are_an_error_at_the_start(tmp_path):
    missing = ServerSettings(tls_cert_file=str(tmp_path / "c"), tls_private_key_file=str(tmp_path / "k"))
    with pytest.raises(CredentialsError, match="the certificate of the server cannot be read"):
        check_files(missing)
    check_files(DELEGATED)


def test_an_encrypted_key_is_an_error_and_no_question_on_the_terminal(tmp_path):
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
    )

    key = ec.generate_private_key(ec.SECP256R1())
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word"))
    settings = files(tmp_path, certificates_of_servers.self_signed())
    (tmp_path / "tls.key").write_bytes(locked)
    with pytest.raises(CredentialsError, match="its key cannot be read"):
        check_files(settings)


def test_old_versions_of_tls_are_not_spoken():
    assert ServingCertificate(certificates_of_servers.self_signed, "x").context.minimum_version == (
        ssl.TLSVersion.TLSv1_2
    )
