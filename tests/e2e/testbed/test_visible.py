"""`make up` asks the API server to pass questions on to its scheduler, where that can be reached."""

from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.command import values_of, visible


def test_without_an_address_beside_loopback_nothing_is_changed() -> None:
    values = values_of(None)
    assert visible(values, "") == values


def test_the_scheduler_listens_only_where_the_api_server_reaches_it_and_keeps_its_profiles() -> None:
    values = values_of("carbyne")
    shown = visible(values, "192.0.2.7")
    config = shown["config"]
    assert config["profiles"] == values["config"]["profiles"]
    where = config["visibility"]
    assert (where["address"], where["advertiseAddress"]) == ("192.0.2.7", "192.0.2.7")
    (service,) = [each for each in chart.render(shown) if each["kind"] == "APIService"]
    assert service["spec"]["group"] == "visibility.eclectus.dev"
