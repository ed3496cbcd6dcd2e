"""Masks of sites: from both keys and the whole round, by RFC 5869 and AES in counter mode."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.pate.sites import Round
from tacit.pate.sites.messages import KEY_BYTES, mask_of, public_key_of
from tacit.pate.sites.round import SiteEntry
from tacit.privacy import Relation

pytest.importorskip("cryptography")

KEYS = [hashlib.sha256(bytes([i])).digest() for i in range(3)]
SITES = tuple(SiteEntry(name, 9, public_key_of(key)) for name, key in zip("abc", KEYS, strict=True))
ROUND = Round("may", SITES, 3, "0" * 64, 40, noise_std=9.0, n_missing=1, masked=True)


def words_of(agreed: Round, first: int, second: int) -> Any:
    """Return what a pair adds and takes off, HKDF written down from RFC 5869."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    theirs = X25519PublicKey.from_public_bytes(bytes.fromhex(agreed.sites[second].public_key))
    secret = X25519PrivateKey.from_private_bytes(KEYS[first]).exchange(theirs)
    extracted = hmac.digest(hashlib.sha256(agreed.to_bytes()).digest(), secret, "sha256")
    key = hmac.digest(extracted, b"tacit votes" + b"\x01", "sha256")
    # counter mode: the cipher of 0, 1, 2, ..., two words each
    n = agreed.n_queries * agreed.n_classes
    blocks = b"".join(i.to_bytes(16, "big") for i in range(-(-n // 2)))
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    stream = np.frombuffer(cipher.update(blocks), "<u8")[:n]
    return stream.reshape(agreed.n_queries, agreed.n_classes)


def test_masks_are_what_the_standards_say() -> None:
    assert KEY_BYTES == 32
    pairs = {(i, j): words_of(ROUND, i, j) for i, j in ((0, 1), (0, 2), (1, 2))}
    for (i, j), words in pairs.items():
        assert np.array_equal(words, words_of(ROUND, j, i))
    signs = [[1, 1, 0], [-1, 0, 1], [0, -1, -1]]
    for site, signed in enumerate(signs):
        expected = np.zeros((40, 3), dtype=np.uint64)
        for sign, words in zip(signed, pairs.values(), strict=True):
            expected += words if sign > 0 else -words if sign else np.uint64(0)
        assert np.array_equal(mask_of(ROUND, site, KEYS[site]), expected)


@pytest.mark.parametrize(
    "other",
    [
        {"name": "june"},
        {"queries": "1" * 64},
        {"noise_std": 9.5},
        {"n_missing": 0},
        {"relation": Relation.REPLACE},
        {"sites": tuple(replace(site, n_teachers=10) for site in SITES)},
    ],
    ids=str,
)
def test_masks_of_one_round_are_none_of_another(other: dict[str, Any]) -> None:
    """With masks that two rounds share, the difference of a site's votes would be in the open."""
    again = replace(ROUND, **other)
    for site, key in enumerate(KEYS):
        # 120 words of 64 bits each: two are alike once in 2^57
        assert not np.any(mask_of(again, site, key) == mask_of(ROUND, site, key))


def test_no_two_numbers_of_a_site_have_one_mask() -> None:
    for site, key in enumerate(KEYS):
        assert np.unique(mask_of(ROUND, site, key)).size == 120
