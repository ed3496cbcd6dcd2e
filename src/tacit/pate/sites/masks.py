"""Pairwise masks: what two sites alone know, added by one and taken off by the other.

Each pair agrees on a secret by X25519; HKDF with SHA-256 makes a key of it for one round, and
AES-256 in counter mode the words. Masks cancel in the sum over all sites, modulo 2^64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.pate.sites.messages import VotesRejected
from tacit.pate.sites.round import Round

Words = npt.NDArray[np.uint64]

KEY_BYTES = 32


def new_private_key() -> bytes:
    """Return a new X25519 private key, 32 bytes from the operating system."""
    return bytes(_x25519().X25519PrivateKey.generate().private_bytes_raw())


def public_key_of(private_key: bytes) -> str:
    """Return the public key of a private one, in hexadecimal.

    Examples
    --------
    >>> from tacit.pate.sites.masks import new_private_key, public_key_of
    >>> len(public_key_of(new_private_key()))
    64
    """
    private = _x25519().X25519PrivateKey.from_private_bytes(private_key)
    return bytes(private.public_key().public_bytes_raw()).hex()


def mask_of(agreed: Round, site: int, private_key: bytes) -> Words:
    """Return what a site adds to its votes: + for sites after it, - for those before.

    Examples
    --------
    >>> from tacit.pate.sites import Round, SiteEntry
    >>> from tacit.pate.sites.masks import mask_of, new_private_key, public_key_of
    >>> keys = [new_private_key() for _ in range(3)]
    >>> sites = tuple(SiteEntry(str(i), 9, public_key_of(key)) for i, key in enumerate(keys))
    >>> agreed = Round("may", sites, 2, "0" * 64, 4, noise_std=9.0, masked=True)
    >>> masks = [mask_of(agreed, i, key) for i, key in enumerate(keys)]
    >>> int((masks[0] + masks[1] + masks[2]).max()), bool(masks[0].any())
    (0, True)
    """
    total = np.zeros((agreed.n_queries, agreed.n_classes), dtype=np.uint64)
    for other, entry in enumerate(agreed.sites):
        if other == site:
            continue
        try:
            words = _words(agreed, private_key, bytes.fromhex(entry.public_key), total.size)
        except ValueError:  # a point of low order: everybody knows the secret that it makes
            raise VotesRejected(
                f"the public key of {entry.name} is none that hides anything; agree on a round "
                "with the key that its TeacherSite.entry gives."
            ) from None
        # modulo 2^64, as uint64 is
        total += words.reshape(total.shape) if other > site else -words.reshape(total.shape)
    return total


def _words(agreed: Round, private_key: bytes, public_key: bytes, n: int) -> Words:
    """Return the words that a pair of sites shares in this round."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    keys = _x25519()
    private = keys.X25519PrivateKey.from_private_bytes(private_key)
    secret = private.exchange(keys.X25519PublicKey.from_public_bytes(public_key))
    # The round's digest holds both keys and everything else: another round has other masks.
    derived = HKDF(SHA256(), 32, salt=agreed.digest, info=b"tacit votes").derive(secret)
    stream = Cipher(algorithms.AES(derived), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(stream.update(bytes(8 * n)), "<u8").astype(np.uint64)


def _x25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import x25519
    except ImportError:
        raise ImportError(
            "masked votes need the package cryptography; pip install tacit[sites]."
        ) from None
    return x25519
