import asyncio
import base64
import json
import os
import ssl
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from eclectus.kubeclient.api_errors import CredentialsError, NotDoneError, UnauthenticatedError
from eclectus.kubeclient.client import connected
from eclectus.kubeclient.credentials import Credentials, Endpoint, in_cluster, load


def kubeconfig(path, cluster, user=None):
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_token_becomes_a_bearer_header(tmp_path):
    file = kubeconfig(tmp_path / "k", {"server": "http://127.0.0.1:1"}, {"token": "abc"})
    assert load(file).headers == {"Authorization": "Bearer abc"}


def test_a_proxy_of_the_environment_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:1")
    assert load(kubeconfig(tmp_path / "k", {"server": "https://10.0.0.1"})).endpoint.proxy is None


@pytest.mark.parametrize(("host", "used"), [("10.0.0.1", True), ("127.0.0.1", False), ("localhost", False)])
def test_the_kubeconfigs_proxy_is_used_but_not_for_loopback(tmp_path, host, used):
    file = kubeconfig(tmp_path / "k", {"server": f"https://{host}", "proxy-url": "http://proxy:1"})
    assert (load(file).endpoint.proxy is not None) == used


def test_an_unverified_server_is_rejected_with_advice(tmp_path):
    file = kubeconfig(tmp_path / "k", {"server": "https://10.0.0.1", "insecure-skip-tls-verify": True})
    with pytest.raises(CredentialsError, match="certificate-authority-data"):
        load(file)


def test_tls_is_verified_and_the_context_can_be_chosen(tmp_path):
    endpoint = load(kubeconfig(tmp_path / "k", {"server": "https://10.0.0.1/prefix/"}), "x").endpoint
    assert endpoint.url == "https://10.0.0.1/prefix"
    assert endpoint.tls.check_hostname


@pytest.mark.parametrize("content", ["", "kind: Config\n", "{"])
def test_a_malformed_kubeconfig_is_named(tmp_path, content):
    (tmp_path / "k").write_text(content)
    with pytest.raises(CredentialsError, match=str(tmp_path)):
        load(tmp_path / "k")


def test_a_refused_token_is_renewed_and_the_request_sent_again(server, answers, monkeypatch):
    def configure(file, context, configuration):
        configuration.host = "http://localhost"
        configuration.api_key["BearerToken"] = "bearer old"
        configuration.refresh_api_key_hook = lambda it: it.api_key.update(BearerToken="bearer new")

    monkeypatch.setattr("kubernetes.config.load_kube_config", configure)
    monkeypatch.setenv("KUBECONFIG", "several:files")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    seen = []

    async def guard(request):
        seen.append(request.headers["Authorization"])
        return await answers.says({}, 200 if seen[-1].endswith("new") else 401)(request)

    server.on("GET /x", guard)

    async def work():
        async with server.context() as context:
            context.client.credentials = replace(load(), endpoint=context.client.credentials.endpoint)
            await context.client.get("/x")

    asyncio.run(work())
    assert seen == ["Bearer old", "Bearer new"]


@pytest.mark.parametrize("error", [CredentialsError("the token cannot be read"), OSError("no such file")])
def test_a_refused_token_that_cannot_be_renewed_is_an_error_of_the_request(server, answers, error):
    """Whoever asked tries again; the token may be back by then."""
    server.on("GET /x", answers.says({}, 401), answers.says({}, 401), answers.says({"a": 1}))

    def renew():
        raise error

    async def work():
        async with server.context() as context:
            context.client.credentials = Credentials(context.client.credentials.endpoint, renew=renew)
            with pytest.raises(UnauthenticatedError):
                await context.client.get("/x")
            return await context.client.get("/x")

    assert asyncio.run(work())


def test_a_plain_kubeconfig_is_read_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "kubernetes.config", None)
    file = kubeconfig(tmp_path / "k", {"server": "http://127.0.0.1:1/"}, {"tokenFile": "t"})
    (tmp_path / "t").write_text("one\n")
    credentials = load(file)
    assert (credentials.endpoint.url, credentials.headers) == (
        "http://127.0.0.1:1",
        {"Authorization": "Bearer one"},
    )
    (tmp_path / "t").write_text("two\n")
    asyncio.run(credentials.refresh_after(credentials.renewals))
    assert credentials.headers == {"Authorization": "Bearer two"}


def test_certificates_that_are_replaced_on_disk_are_read_again(tmp_path, certificates):
    for name, pem in (("ca", certificates.authority), ("pair", certificates.good)):
        (tmp_path / name).write_bytes(pem)
    cluster = {"server": "https://10.0.0.1", "certificate-authority": "ca"}
    file = kubeconfig(tmp_path / "k", cluster, {"client-certificate": "pair", "client-key": "pair"})
    credentials = load(file)
    first = credentials.endpoint.tls
    asyncio.run(credentials.refresh_after(credentials.renewals))
    assert credentials.endpoint.tls is first, "as long as nothing changes, connections are kept"
    (tmp_path / "ca").write_bytes(certificates.authority + certificates.another_authority)
    asyncio.run(credentials.refresh_after(credentials.renewals))
    second = credentials.endpoint.tls
    assert second.cert_store_stats()["x509_ca"] == 2
    (tmp_path / "pair").write_bytes(b"half of a pair")
    with pytest.raises(CredentialsError, match="certificate and its key"):
        asyncio.run(credentials.refresh_after(credentials.renewals))
    assert credentials.endpoint.tls is second, "what cannot be read replaces nothing"


def test_a_server_with_a_certificate_of_a_new_authority_is_trusted_once_that_is_on_disk(
    tmp_path, certificates
):
    (tmp_path / "ca").write_bytes(certificates.another_authority)
    (tmp_path / "server").write_bytes(certificates.good)
    own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    own.load_cert_chain(tmp_path / "server")

    async def answer(_):
        return web.json_response({})

    async def work():
        app = web.Application()
        app.router.add_get("/x", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=own).start()
        cluster = {"server": f"https://127.0.0.1:{runner.addresses[0][1]}", "certificate-authority": "ca"}
        credentials = load(kubeconfig(tmp_path / "k", cluster))
        async with connected(credentials, 5.0) as client:
            with pytest.raises(NotDoneError, match="not signed by"):
                await client.get("/x")
            (tmp_path / "ca").write_bytes(certificates.authority)
            await credentials.refresh_after(credentials.renewals)
            await client.get("/x")
        await runner.cleanup()

    asyncio.run(work())


def test_requests_that_are_refused_together_renew_the_token_once(server, answers):
    renewed = []

    def renew():
        renewed.append("Bearer new")
        return {"Authorization": renewed[-1]}

    async def guard(request):
        is_new = request.headers["Authorization"] == "Bearer new"
        return await answers.says({}, 200 if is_new else 401)(request)

    server.on("GET /x", guard)

    async def work():
        async with server.context(seconds=10) as context:
            context.client.credentials = Credentials(
                context.client.credentials.endpoint, {"Authorization": "Bearer old"}, renew
            )
            await asyncio.gather(*(context.client.get("/x") for _ in range(50)))

    asyncio.run(work())
    assert len(renewed) == 1


def test_a_token_that_cannot_be_read_keeps_no_certificate_from_being_renewed():
    contexts = [ssl.create_default_context() for _ in range(2)]

    def renew():
        raise CredentialsError("the token cannot be read")

    credentials = Credentials(
        Endpoint("https://a", contexts[0]), {"a": "old"}, renew, renew_tls=lambda: contexts[1]
    )
    with pytest.raises(CredentialsError):
        asyncio.run(credentials.refresh_after(credentials.renewals))
    assert (credentials.headers, credentials.endpoint.tls) == ({"a": "old"}, contexts[1])


@pytest.mark.parametrize("damage", ["", None])
def test_a_token_file_that_is_empty_or_gone_leaves_the_old_token_in_use(tmp_path, damage):
    file = kubeconfig(tmp_path / "k", {"server": "http://127.0.0.1:1/"}, {"tokenFile": "t"})
    (tmp_path / "t").write_text("one\n")
    credentials = load(file)
    (tmp_path / "t").unlink() if damage is None else (tmp_path / "t").write_text(damage)
    with pytest.raises(CredentialsError, match="the token cannot be read"):
        asyncio.run(credentials.refresh_after(credentials.renewals))
    assert credentials.headers == {"Authorization": "Bearer one"}


def test_certificates_of_a_plugins_cluster_are_read_again_too(tmp_path, certificates):
    (tmp_path / "ca").write_bytes(certificates.authority)
    cluster = {"server": "https://10.0.0.1", "certificate-authority": str(tmp_path / "ca")}
    credentials = load(kubeconfig(tmp_path / "k", cluster, {"exec": plugin_with_a_token(tmp_path)}))
    first = credentials.endpoint.tls
    asyncio.run(credentials.refresh_after(credentials.renewals))
    assert credentials.endpoint.tls is first
    (tmp_path / "ca").write_bytes(certificates.authority + certificates.another_authority)
    asyncio.run(credentials.refresh_after(credentials.renewals))
    assert credentials.endpoint.tls.cert_store_stats()["x509_ca"] == 2


def test_an_exec_plugin_is_run_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    user = {"exec": plugin_with_a_token(tmp_path)}
    file = kubeconfig(tmp_path / "k", {"server": "http://127.0.0.1:1"}, user)
    assert load(file).headers == {"Authorization": "Bearer p"}


def plugin_with_a_token(tmp_path):
    plugin = tmp_path / "plugin"
    version = "client.authentication.k8s.io/v1"
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": "p"}}
    plugin.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    plugin.chmod(0o755)
    return {"apiVersion": version, "command": str(plugin), "interactiveMode": "Never"}


def test_in_a_pod_the_service_account_is_used(tmp_path, monkeypatch, certificates):
    (tmp_path / "token").write_text("pod\n")
    (tmp_path / "ca.crt").write_bytes(certificates.authority)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    found = in_cluster(tmp_path)
    assert found.endpoint.url == "https://[fd00::1]:6443"
    assert found.headers == {"Authorization": "Bearer pod"}
    assert found.endpoint.tls.cert_store_stats()["x509_ca"] == 1
    with pytest.raises(CredentialsError, match="automountServiceAccountToken"):
        in_cluster(tmp_path / "nowhere")


@pytest.mark.parametrize("has_memory_files", [True, False])
def test_a_client_certificate_is_loaded_and_a_broken_one_is_named(
    tmp_path, certificates, monkeypatch, has_memory_files
):
    on_disk = []
    if not has_memory_files:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    named = tempfile.NamedTemporaryFile
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", lambda: on_disk.append(named()) or on_disk[-1])
    cluster = {"server": "https://10.0.0.1", "certificate-authority-data": base64_of(certificates.authority)}
    pair = {
        "client-certificate-data": base64_of(certificates.good),
        "client-key-data": base64_of(certificates.good),
    }
    assert load(kubeconfig(tmp_path / "k", cluster, pair)).authenticates_by.startswith(
        "the client certificate"
    )
    broken = {
        "client-certificate-data": base64_of(certificates.authority),
        "client-key-data": base64_of(b"no key"),
    }
    with pytest.raises(CredentialsError, match="certificate and its key"):
        load(kubeconfig(tmp_path / "k", cluster, broken))
    assert len(on_disk) == (0 if has_memory_files else 2), "a key is on no disk where that can be"
    assert not any(Path(each.name).exists() for each in on_disk)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"current-context": ""}, "has no current-context: choose one of x with --context"),
        ({"current-context": "prod"}, "has no context 'prod': choose one of x with --context"),
        ({"contexts": []}, "has no context 'x': add one with `kubectl config set-context`"),
        ({"clusters": []}, "the context names cluster 'c', which is not among its clusters"),
        ({"users": []}, "the context names user 'u', which is not among its users"),
    ],
)
def test_a_kubeconfig_without_a_usable_context_says_what_to_do(tmp_path, change, words):
    file = kubeconfig(tmp_path / "k", {"server": "https://10.0.0.1"})
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | change))
    with pytest.raises(CredentialsError) as caught:
        load(file)
    assert str(caught.value) == f"{file}: {words}"


def base64_of(data):
    return base64.b64encode(data).decode()
