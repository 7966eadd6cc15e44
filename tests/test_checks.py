import numpy as np
import pytest

from polymargin.checks import check_choice, check_entries, check_flag, check_integer, check_real


def test_numbers_within_their_bounds_come_back_as_floats():
    assert check_real("x", np.float32(0.5), above=0.0, at_most=1.0) == 0.5
    assert isinstance(check_real("x", 3), float)
    assert check_real("x", np.inf, finite=False) == np.inf


@pytest.mark.parametrize(
    ("value", "bounds", "allowed"),
    [
        (0, {"above": 0.0}, "a finite number greater than 0"),
        (-1, {"at_least": 0.0}, "a finite number of at least 0"),
        (2, {"at_most": 1.0}, "a finite number and at most 1"),
        (np.nan, {}, "a finite number"),
        (np.inf, {}, "a finite number"),
        (np.nan, {"finite": False}, "a number"),
    ],
)
def test_numbers_outside_are_named(value, bounds, allowed):
    with pytest.raises(ValueError, match=f"^x must be {allowed}, got {value}\\.$"):
        check_real("x", value, **bounds)


@pytest.mark.parametrize("value", ["1", None, True, np.bool_(False), [1.0]])
def test_other_types_are_no_numbers(value):
    with pytest.raises(TypeError, match=f"of type {type(value).__name__}"):
        check_real("x", value)


def test_integers():
    assert check_integer("n", np.int32(4), at_least=1) == 4
    with pytest.raises(ValueError, match=r"n must be an integer of at least 1, got 0\."):
        check_integer("n", 0, at_least=1)
    for value in (2.0, True, "3"):
        with pytest.raises(TypeError, match="n must be an integer of at least 1"):
            check_integer("n", value, at_least=1)


def test_flags_and_choices():
    assert check_flag("flag", np.bool_(True)) is True
    with pytest.raises(TypeError, match="flag must be True or False, got 1 of type int"):
        check_flag("flag", 1)
    assert check_choice("way", "up", ("up", "down")) == "up"
    for value in ("left", 3):
        with pytest.raises(ValueError, match="way must be one of 'up', 'down', got"):
            check_choice("way", value, ("up", "down"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("step", [1, 2])
def test_entries_out_of_range_are_refused_in_every_precision_and_layout(dtype, step):
    X = np.ones((4, 6), dtype=dtype)
    check_entries("X", X[:, ::step])
    X[2, 4] = -1e31
    with pytest.raises(ValueError, match=r"X must have entries of absolute value at most 1e\+30, got 1e\+31"):
        check_entries("X", X[:, ::step])
