import asyncio
from types import SimpleNamespace

import pytest
import yaml

from eclectus.kubeclient.credentials import Endpoint, from_configuration, load
from eclectus.kubeclient.errors import CredentialsError


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


def test_a_refused_token_is_renewed_and_the_request_sent_again(server, answers):
    configuration = SimpleNamespace(api_key={"BearerToken": "bearer old"})
    configuration.refresh_api_key_hook = lambda it: it.api_key.update(BearerToken="bearer new")
    seen = []

    async def guard(request):
        seen.append(request.headers["Authorization"])
        return await answers.says({}, 200 if seen[-1].endswith("new") else 401)(request)

    server.on("GET /x", guard)

    async def work():
        async with server.context() as context:
            context.client._credentials = from_configuration(Endpoint(""), configuration)
            await context.client.get("/x")

    asyncio.run(work())
    assert seen == ["Bearer old", "Bearer new"]
