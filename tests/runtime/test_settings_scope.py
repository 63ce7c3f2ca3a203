import random
import threading
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from tensorplay.errors import SettingError
from tensorplay.runtime.setting_kind import SettingValue
from tensorplay.runtime.settings import Settings


@pytest.fixture
def settings() -> Settings:
    return Settings({"TP_TUNABLEOP_TUNING": "0"})


def held(settings: Settings, name: str) -> tuple[SettingValue, str]:
    return next((state.value, state.origin) for state in settings.describe() if state.name == name)


def test_a_scope_gives_back_value_and_origin(settings: Settings) -> None:
    before = settings.describe()
    with settings.scope(tuning=True, verbose=2, filename="a.csv"):
        assert held(settings, "tuning") == (True, "api")
        assert (settings.verbose, settings.filename) == (2, "a.csv")
    assert settings.describe() == before
    assert (settings.tuning, settings.verbose) == (False, 0)


def test_a_scope_gives_back_what_it_changed_when_the_body_raises(settings: Settings) -> None:
    before = settings.describe()
    with pytest.raises(KeyboardInterrupt), settings.scope(tuning=True):
        raise KeyboardInterrupt
    assert settings.describe() == before


def test_a_scope_leaves_alone_what_it_does_not_name(settings: Settings) -> None:
    with settings.scope(tuning=True):
        settings.set("enabled", value=True)
    assert held(settings, "enabled") == (True, "api")


def test_what_is_set_inside_a_scope_of_that_setting_ends_with_it(settings: Settings) -> None:
    with settings.scope(tuning=True):
        settings.set("tuning", value=False, origin="rest")
        assert held(settings, "tuning") == (False, "rest")
    assert held(settings, "tuning") == (False, "environment")


@pytest.mark.parametrize("values", [{"tuning": True, "tunning": True}, {"tuning": True, "self": 1}, {"tuning": "yes"}])
def test_a_wrong_name_or_value_is_refused_by_the_call_before_anything_changes(
    settings: Settings, values: dict[str, object]
) -> None:
    before = settings.describe()
    with pytest.raises(SettingError):
        settings.scope(**values)
    assert settings.describe() == before


def test_a_wrong_name_is_answered_with_the_nearest(settings: Settings) -> None:
    with pytest.raises(SettingError, match=r"'tunning' is no setting; did you mean tuning\?"):
        settings.scope(tunning=True)


def test_a_scope_that_is_not_entered_changes_nothing(settings: Settings) -> None:
    settings.scope(tuning=True)
    assert not settings.tuning


def test_nested_scopes_peel_off(settings: Settings) -> None:
    with settings.scope(verbose=1):
        with settings.scope(verbose=2):
            assert settings.verbose == 2
        assert settings.verbose == 1
    assert held(settings, "verbose") == (0, "default")


def test_of_overlapping_scopes_the_later_stays_until_it_ends(settings: Settings) -> None:
    first, second = settings.scope(verbose=1), settings.scope(verbose=2)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert settings.verbose == 2
    second.__exit__(None, None, None)
    assert held(settings, "verbose") == (0, "default")


def test_changes_are_told_on_the_way_in_and_out(settings: Settings) -> None:
    heard: list[tuple[str, SettingValue, SettingValue]] = []
    settings.on_change(lambda name, old, new: heard.append((name, old, new)))
    with settings.scope(verbose=1, enabled=False):
        pass
    assert heard == [("verbose", 0, 1), ("verbose", 1, 0)]


def test_an_interrupted_entry_is_undone(settings: Settings) -> None:
    def interrupt(name: str, old: SettingValue, new: SettingValue) -> None:
        if new == 1:
            raise KeyboardInterrupt

    settings.on_change(interrupt)
    with pytest.raises(KeyboardInterrupt), settings.scope(verbose=1):
        pytest.fail("the body must not run")
    assert held(settings, "verbose") == (0, "default")


@hypothesis_settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_scopes_that_end_in_any_order_leave_the_start(data: DataObject) -> None:
    settings = Settings({})
    before = settings.describe()
    levels = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=6))
    stacks: dict[int, ExitStack] = {}
    for number, level in enumerate(levels):
        stacks[number] = ExitStack()
        stacks[number].enter_context(settings.scope(verbose=level, enabled=bool(level % 2)))
        assert settings.verbose == level
    for number in data.draw(st.permutations(list(stacks))):
        stacks.pop(number).close()
        assert settings.verbose == (levels[max(stacks)] if stacks else 0)
    assert settings.describe() == before


def test_many_threads_may_set_and_scope_at_once(settings: Settings) -> None:
    threads, rounds = 6, 300
    begin = threading.Barrier(threads)
    problems: list[str] = []
    settings.set("max_tuning_duration_ms", 7)
    before = {name: held(settings, name) for name in ("max_tuning_duration_ms", "max_warmup_samples")}

    def work(number: int) -> None:
        rng = random.Random(number)  # noqa: S311 - no secret
        begin.wait(30)
        for _ in range(rounds):
            with settings.scope(max_tuning_duration_ms=number + 100, max_warmup_samples=number):
                if rng.random() < 0.5:
                    settings.set("max_tuning_duration_ms", number + 200)
                if not 100 <= settings.max_tuning_duration_ms < 200 + threads:
                    problems.append(f"saw {settings.max_tuning_duration_ms}")
            settings.set("max_tuning_samples", rng.randrange(1000))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(50)
    assert not any(worker.is_alive() for worker in workers)
    assert problems == []
    assert {name: held(settings, name) for name in before} == before
    assert held(settings, "max_tuning_samples") == (settings.max_tuning_samples, "api")
