//! `python/firstflight/records/declared.py` is the schema that is declared here.

use std::{env, fmt::Write, fs, path::Path};

use firstflight_records::{COUNTED, DIMENSIONS, GAMMA, SCHEMA_VERSION, TABLES, table::Declared};

#[test]
fn pythons_schema_is_the_one_declared_here() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/firstflight/records/declared.py");
    let expected = python();
    if env::var_os("FIRSTFLIGHT_WRITE_SNAPSHOTS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "write it anew: FIRSTFLIGHT_WRITE_SNAPSHOTS=1 cargo test -p firstflight-records");
}

#[test]
fn a_column_of_names_has_no_value_for_null() {
    for column in TABLES.iter().flat_map(|(_, columns)| *columns) {
        assert!(!(column.is_name && column.null.is_some()), "{column:?}");
    }
}

fn python() -> String {
    let mut text = String::from(
        "\"\"\"The schema of records. Generated from `crates/records/src/rows.rs` by the tests of that crate; do not edit.\"\"\"\n\n\
         # ruff: noqa: E501\n# fmt: off\n\nimport polars as pl\n\nfrom firstflight.records.column import Column\n\n",
    );
    writeln!(text, "SCHEMA_VERSION = {SCHEMA_VERSION}").unwrap();
    writeln!(text, "# The units that `aggregates` and `histograms` count, and their keys.").unwrap();
    writeln!(text, "COUNTED = {}\nDIMENSIONS = {}", tuple(&COUNTED), tuple(&DIMENSIONS)).unwrap();
    writeln!(text, "# Bin b of a histogram holds completion times above GAMMA^(b-1) ns, up to GAMMA^b ns.").unwrap();
    writeln!(text, "GAMMA = {GAMMA}\n\nTABLES = {{").unwrap();
    for (name, columns) in TABLES {
        writeln!(text, "    {name:?}: (").unwrap();
        columns.iter().for_each(|column| writeln!(text, "        {},", declared(column)).unwrap());
        writeln!(text, "    ),").unwrap();
    }
    text + "}\n"
}

fn tuple(names: &[&str]) -> String {
    format!("({})", names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", "))
}

fn declared(column: &Declared) -> String {
    let dtype = match column.dtype {
        _ if column.is_name => "None",
        "u1" => "pl.UInt8",
        "<u2" => "pl.UInt16",
        "<u4" => "pl.UInt32",
        "<u8" => "pl.UInt64",
        "<i4" => "pl.Int32",
        "<i8" => "pl.Int64",
        "<f8" => "pl.Float64",
        other => panic!("{other} has no name in Polars"),
    };
    let none = match column.null {
        None => String::new(),
        Some(value) if value.is_nan() => ", none=float(\"nan\")".into(),
        Some(value) => format!(", none={value}"),
    };
    format!("Column({:?}, {dtype}, {:?}, {:?}{none})", column.name, column.unit, column.meaning.trim())
}
