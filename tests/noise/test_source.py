import copy
import functools
import itertools
import operator
import os
import pickle

import numpy as np
import pytest

from tacit.noise import secure_source, seeded_source
from tacit.noise.gaussian import gaussian
from tests.noise.helpers import bounded


def _double(a):
    return ((a << 1) ^ 0x1B) & 0xFF if a & 0x80 else a << 1


@functools.cache
def _box():
    """The substitution box: the inverse in GF(2^8), then an affine map."""
    powers = [1]  # of 3, which generates the field
    for _ in range(254):
        powers.append(powers[-1] ^ _double(powers[-1]))
    inverse = {power: powers[(255 - i) % 255] for i, power in enumerate(powers)} | {0: 0}

    def rotate(a, i):
        return ((a << i) | (a >> (8 - i))) & 0xFF

    return [
        functools.reduce(operator.xor, (rotate(inverse[a], i) for i in range(5))) ^ 0x63
        for a in range(256)
    ]


def _aes_128(key: bytes, block: bytes) -> bytes:
    """AES-128 after FIPS 197, written for clarity, as an oracle."""
    box, constant = _box(), 1
    words = [list(key[i : i + 4]) for i in range(0, 16, 4)]
    for i in range(4, 44):
        word = words[-1]
        if i % 4 == 0:
            word = [box[a] for a in word[1:] + word[:1]]
            word[0] ^= constant
            constant = _double(constant)
        words.append([a ^ b for a, b in zip(words[i - 4], word, strict=True)])
    keys = [list(itertools.chain(*words[i : i + 4])) for i in range(0, 44, 4)]
    state = [a ^ b for a, b in zip(block, keys[0], strict=True)]
    for number in range(1, 11):
        state = [box[state[(5 * i) % 16]] for i in range(16)]  # substitute, shift rows
        if number < 10:
            state = [_mixed(state[4 * c : 4 * c + 4], r) for c in range(4) for r in range(4)]
        state = [a ^ b for a, b in zip(state, keys[number], strict=True)]
    return bytes(state)


def _mixed(column, r):
    a, b, c, d = (column[(r + i) % 4] for i in range(4))
    return _double(a) ^ _double(b) ^ b ^ c ^ d


def test_oracle_agrees_with_fips_197():
    key, plain = bytes(range(16)), bytes.fromhex("00112233445566778899aabbccddeeff")
    assert _aes_128(key, plain).hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"
    assert _aes_128(bytes(16), bytes(16)).hex() == "66e94bd4ef8a2c3b884cfa59ca342b2e"


@pytest.mark.parametrize(
    "key", [bytes(16), bytes(range(16)), os.urandom(16)], ids=["zeros", "counting", "random"]
)
def test_the_generator_is_aes_128_in_counter_mode(key):
    from randomgen import AESCounter

    stream = AESCounter(key=int.from_bytes(key, "little")).random_raw(40)
    expected = b"".join(_aes_128(key, i.to_bytes(16, "little")) for i in range(20))
    assert stream.astype("<u8").tobytes() == expected


def test_secure_sources_use_fresh_keys(monkeypatch):
    asked: list[int] = []

    def randbits(n: int) -> int:
        asked.append(n)
        return len(asked)

    monkeypatch.setattr("secrets.randbits", randbits)
    first, second = secure_source(), secure_source()
    assert asked == [128, 128]
    assert not np.array_equal(first.words(4), second.words(4))


def test_words_do_not_repeat():
    source = secure_source()
    words = np.concatenate([source.words(n) for n in (1, 1, 5, 1000, 3)])
    assert np.unique(words).size == words.size


def test_two_releases_differ():
    value = bounded(np.zeros(8))
    assert not np.array_equal(gaussian(value, 1.0).value, gaussian(value, 1.0).value)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_processes_do_not_share_a_stream():
    source = secure_source()
    source.words(3)
    seen = [_words_of_child(source), _words_of_child(source), source.words(4).tobytes()]
    assert len(set(seen)) == 3


def _words_of_child(source):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        os.write(write, source.words(4).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    words = os.read(read, 32)
    os.close(read)
    os.close(write)
    return words


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_secure_source_cannot_be_copied(duplicate):
    with pytest.raises(TypeError, match=r"secure_source\(\)"):
        duplicate(secure_source())


def test_a_seeded_source_repeats_and_says_it_is_not_secure():
    assert np.array_equal(seeded_source(3).words(9), seeded_source(3).words(9))
    assert not seeded_source(3).is_secure
    assert secure_source().is_secure


@pytest.mark.parametrize("seed", [-1, 1.5, True, None])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises((TypeError, ValueError), match="seed"):
        seeded_source(seed)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_with_its_parents_number_does_not_share_the_stream(monkeypatch):
    # In a PID namespace a child can have the number its parent has.
    monkeypatch.setattr(os, "getpid", lambda: 1)
    source = secure_source()
    assert _words_of_child(source) != source.words(4).tobytes()
