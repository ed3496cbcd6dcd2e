import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from tacit.linear_model import LogisticRegression
from tacit.schema import Ignored, Number, Schema, SchemaEncoder, SchemaError, encode_table
from tests.schema.helpers import LABELS, ROWS, SCHEMA, columns


def test_fit_needs_no_data():
    encoder = SchemaEncoder(SCHEMA)
    for fitted in (encoder.fit(), encoder.fit(None), encoder.fit("anything", object())):
        assert fitted is encoder
        assert fitted.row_norm_ == SCHEMA.row_norm
        assert fitted.n_features_in_ == 5
        assert fitted.feature_names_in_.tolist() == ["age", "size", "hours", "town", "smoker"]
    assert np.array_equal(SchemaEncoder(SCHEMA).transform(columns()), encoder.transform(columns()))


def test_it_is_a_transformer():
    encoder = clone(SchemaEncoder(SCHEMA, dtype=np.float32))
    rows = pickle.loads(pickle.dumps(encoder)).fit_transform(columns())
    assert rows.dtype == np.float32
    assert np.allclose(rows, ROWS)
    assert encoder.get_feature_names_out().tolist() == list(SCHEMA.feature_names)
    frame = encoder.set_output(transform="pandas").fit_transform(pd.DataFrame(columns()))
    assert list(frame.columns) == list(SCHEMA.feature_names)


def test_in_a_pipeline():
    table = pd.DataFrame(columns() | {"age": [20.0, 80.0, 20.0, 80.0]})
    table = pd.concat([table] * 500, ignore_index=True)
    model = make_pipeline(
        SchemaEncoder(SCHEMA),
        LogisticRegression(2.0, 1e-6, row_norm=SCHEMA.row_norm, classes=["no", "yes"]),
    )
    model.fit(table, table["ill"].str.strip())
    assert model.score(table, table["ill"].str.strip()) > 0.9


def test_records_without_a_declared_label_do_not_count():
    assert encode_table(columns(), SCHEMA)[1].tolist() == LABELS
    places: list[int] = []
    schema = Schema((Number("age", 0, 100),), SCHEMA.target)
    table = pd.DataFrame({"age": [1, 2, 3, 4], "ill": ["yes", "perhaps", None, "no"]})
    _, labels = encode_table(table, schema, places=places)
    assert labels.tolist() == ["yes", "no"]
    assert places == [0, 3]
    _, empty = encode_table(table[:0], schema)
    assert empty.dtype == labels.dtype


def test_what_cannot_be_encoded_is_refused():
    with pytest.raises(SchemaError, match="ignored"):
        SchemaEncoder(Schema((Ignored("a"),))).fit()
    with pytest.raises(SchemaError, match="no target"):
        encode_table(columns(), Schema(SCHEMA.columns))
    with pytest.raises(TypeError, match=r"Schema\.from_file"):
        SchemaEncoder("schema.toml").fit()
