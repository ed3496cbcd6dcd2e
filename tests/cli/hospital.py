"""Make the export of a hospital as its system writes it, as a CSV and as a workbook."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl

N_RECORDS = 6001
N_BROKEN = 571  # records whose free text has a line break
HEADER = (
    *(
        "Fallnummer",
        "Geburtsdatum",
        "Aufnahme",
        "Geschlecht",
        "Gr\u00f6\u00dfe [cm]",
        "Gewicht [kg]",
    ),
    *("Diagnose", "Raucher", "Befund", "Bemerkung", "Wiederaufnahme"),
)
SEXES = ("weiblich", "Weiblich", "W", "m\u00e4nnlich", "M\u00c4NNLICH", "m")
ICD = ("250.83", "276", "428", "V58", "V57.1", "E849")


def records(seed: int = 27) -> list[dict[str, Any]]:
    """Return records in which older patients come back more often."""
    rng = np.random.default_rng(seed)
    broken = set(rng.choice(N_RECORDS, N_BROKEN, replace=False).tolist())
    rows = []
    for place in range(N_RECORDS):
        born = datetime.date(1930, 1, 1) + datetime.timedelta(int(rng.integers(0, 27_000)))
        height, weight = rng.normal(172, 10), rng.normal(78, 14)
        age = (datetime.date(2026, 1, 1) - born).days / 365.2425
        returns = rng.random() < 1 / (1 + np.exp(-(age - 60) / 12))
        rows.append(
            {
                "Fallnummer": f"F{100_000 + place}",
                "Geburtsdatum": None if rng.random() < 0.01 else born,
                "Aufnahme": datetime.date(2025, 1, 1)
                + datetime.timedelta(int(rng.integers(0, 365))),
                "Geschlecht": str(rng.choice(SEXES)) if rng.random() > 0.02 else "unbekannt",
                "Gr\u00f6\u00dfe [cm]": 9999 if rng.random() < 0.03 else round(height),
                "Gewicht [kg]": round(weight, 1) if rng.random() > 0.02 else -1,
                "Diagnose": str(rng.choice(ICD)),
                "Raucher": str(rng.choice(["ja", "nein", "JA", "k.A."])),
                "Befund": "Entlassen\nmit Brief" if place in broken else "Entlassen; wohlauf",
                "Bemerkung": None,
                "Wiederaufnahme": str(rng.choice(["ja", "Ja"] if returns else ["nein", "NEIN"])),
            }
        )
    return rows


def write_csv(path: Path) -> Path:
    """Write semicolons, decimal commas, dates as 31.01.1976, umlauts of Windows."""
    lines = [";".join(HEADER) + ";"]
    lines += [";".join(map(_text, row.values())) + ";" for row in records()]
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode("cp1252"))
    return path


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime.date):
        return value.strftime("%d.%m.%Y")
    if isinstance(value, float):
        return str(value).replace(".", ",")
    text = str(value)
    return f'"{text}"' if "\n" in text or ";" in text else text


def write_workbook(path: Path) -> Path:
    """Write dates and numbers as cells of their types."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(HEADER)
    for row in records():
        sheet.append(list(row.values()))
    book.save(path)
    return path
