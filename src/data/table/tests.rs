use polars::prelude::{Column, DataFrame, IntoColumn, NamedFrom, ParquetWriter, Series, StructChunked};

use super::*;
use crate::data::image::tests::encoded;
use crate::spec::data::DataSource;

/// A grey PNG of 3 x 2 pixels, each of them `value`.
fn png(value: u8) -> Vec<u8> {
    encoded(3, 2, png::ColorType::Grayscale, &[value; 6])
}

/// The column of `datasets`: the images of such values, and a path for each.
fn images(values: &[u8]) -> Column {
    let bytes: Vec<Vec<u8>> = values.iter().map(|value| png(*value)).collect();
    let paths: Vec<String> = values.iter().map(|value| format!("{value}.png")).collect();
    of_bytes(bytes.iter().map(|bytes| Some(bytes.as_slice())).collect(), &paths)
}

fn of_bytes(bytes: Vec<Option<&[u8]>>, paths: &[String]) -> Column {
    let fields = [Series::new("bytes".into(), bytes), Series::new("path".into(), paths)];
    StructChunked::from_series("image".into(), paths.len(), fields.iter()).expect("a struct").into_column()
}

fn labels(labels: &[i64]) -> Column {
    Series::new("label".into(), labels).into()
}

fn write(path: &Path, columns: Vec<Column>) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    let mut frame = DataFrame::new_infer_height(columns).expect("a table");
    let file = std::fs::File::create(path).expect("a file");
    ParquetWriter::new(file).with_row_group_size(Some(4)).finish(&mut frame).expect("written");
}

fn tables(folder: &Path) -> Data {
    Data { source: DataSource::Parquet, path: Some(folder.into()), ..Data::default() }
}

/// Two shards of ten rows each and five rows for tests; the value of an image is its number, its class the last digit of that.
fn set(folder: &Path) -> Data {
    let part = |name: &str, values: std::ops::Range<u8>| {
        let values: Vec<u8> = values.collect();
        let classes: Vec<i64> = values.iter().map(|value| i64::from(value % 10)).collect();
        write(&folder.join("data").join(name), vec![images(&values), labels(&classes)]);
    };
    part("train-00000-of-00002.parquet", 0..10);
    part("train-00001-of-00002.parquet", 10..20);
    part("test-00000-of-00001.parquet", 100..105);
    tables(folder)
}

#[test]
fn the_rows_of_all_files_are_the_examples_in_their_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let tables = set(folder.path());
    let UnnormalisedSet { train, test, shape, classes, notices, .. } = open(&tables).expect("a data set");
    assert_eq!((shape, classes, notices.len()), (Shape::Maps { channels: 1, height: 2, width: 3 }, 10, 0));
    assert_eq!((train.count(), test.map(|test| test.count())), (20, Some(5)));
    let mut bytes = [0; 6];
    for index in 0..20 {
        assert_eq!(train.read(index, &mut bytes).expect("decoded"), index as u32 % 10);
        assert_eq!(bytes, [index as u8; 6]);
    }
    assert!(train.name(13).ends_with("data/train-00001-of-00002.parquet, row 3 (13.png)"), "{}", train.name(13));
    // Rows at even distances, from both files; a class counts even if none of its examples is kept.
    let few = open(&Data { examples: Some(4), test_examples: Some(0), ..tables.clone() }).expect("a data set");
    let kept: Vec<u32> = (0..4).map(|index| few.train.read(index, &mut bytes).expect("decoded")).collect();
    assert_eq!((kept, few.classes, few.test.is_none()), (vec![0, 5, 0, 5], 10, true));
    // The same contents, the same fingerprint; another label, another one.
    assert_eq!(train.fingerprint(), open(&tables).expect("a data set").train.fingerprint());
    write(&folder.path().join("data/train-00001-of-00002.parquet"), vec![images(&[7; 10]), labels(&[3; 10])]);
    assert_ne!(train.fingerprint(), open(&tables).expect("a data set").train.fingerprint());
}

#[test]
fn without_a_part_for_tests_one_for_validation_is_taken_and_said() {
    let folder = tempfile::tempdir().expect("a folder");
    write(&folder.path().join("train.parquet"), vec![images(&[1, 2]), labels(&[0, 1])]);
    let alone = open(&tables(folder.path())).expect("a data set");
    assert!(alone.test.is_none() && alone.notices[0].contains("no accuracy is measured"));
    write(&folder.path().join("validation.parquet"), vec![images(&[1, 2]), labels(&[0, 1])]);
    let both = open(&tables(folder.path())).expect("a data set");
    assert!(both.test.is_some() && both.notices[0].ends_with("measured on validation.parquet"));
}

#[test]
fn a_binary_column_and_classes_by_name_are_read_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pictures.parquet");
    let bytes: Vec<Vec<u8>> = [9, 8, 7].map(png).to_vec();
    let bytes: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    let column = |names: [&str; 3]| Series::new("kind".into(), names).into();
    write(&path, vec![Series::new("img".into(), &bytes).into(), column(["dog", "cat", "dog"])]);
    let stated =
        |test: Option<PathBuf>| Data { train: Some(path.clone()), test, label: Some("kind".into()), ..Data::default() };
    let opened = open(&stated(None)).expect("a data set");
    let mut pixels = [0; 6];
    let read: Vec<u32> = (0..3).map(|index| opened.train.read(index, &mut pixels).expect("decoded")).collect();
    // In the order of their names: cat, dog.
    assert_eq!((read, opened.classes, pixels), (vec![1, 0, 1], 2, [7; 6]));
    assert!(opened.train.name(1).ends_with("pictures.parquet, row 1"), "{}", opened.train.name(1));
    let other = folder.path().join("other.parquet");
    write(&other, vec![Series::new("img".into(), &bytes).into(), column(["dog", "cow", "dog"])]);
    let error = open(&stated(Some(other))).expect_err("refused").to_string();
    assert!(error.contains("other.parquet: the class `cow` is not among those of the training part"), "{error}");
}

#[test]
fn a_table_without_the_columns_is_refused_with_those_that_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("train.parquet");
    let refusal = |columns: Vec<Column>, image: Option<&str>, label: Option<&str>| {
        write(&path, columns);
        let [image, label] = [image, label].map(|name| name.map(str::to_owned));
        let tables = Data { image, label, ..tables(folder.path()) };
        open(&tables).expect_err("refused").to_string()
    };
    let texts = || Column::from(Series::new("text".into(), ["a", "b"]));
    let none = refusal(vec![texts(), labels(&[0, 1])], None, None);
    let columns = "no column contains encoded images; the columns are `text` (string), `label` (int64)";
    assert!(none.contains("train.parquet") && none.contains(columns), "{none}");
    let absent = refusal(vec![images(&[1, 2]), labels(&[0, 1])], Some("img"), None);
    let kind = "`image` (struct{bytes: binary, path: string})";
    assert!(absent.contains("no column `img`") && absent.contains(kind), "{absent}");
    let unnamed = refusal(vec![images(&[1, 2]), texts()], None, None);
    assert!(unnamed.contains("is not clear") && unnamed.contains("label = \"COLUMN\""), "{unnamed}");
    let floats = Column::from(Series::new("label".into(), [0.5, 1.5]));
    let float = refusal(vec![images(&[1, 2]), floats], None, None);
    assert!(
        float.contains("`label` is float64, and contains no classes") && float.contains("32 or 64 bits"),
        "{float}"
    );
    let two = images(&[1, 2]).with_name("first".into());
    let several = refusal(vec![two, images(&[1, 2]).with_name("second".into()), labels(&[0, 1])], None, None);
    assert!(several.contains("several columns") && several.contains("image = \"COLUMN\""), "{several}");
    let swapped = refusal(vec![images(&[1, 2]), labels(&[0, 1])], Some("label"), None);
    assert!(swapped.contains("`label` is int64, and contains no encoded images"), "{swapped}");
}

#[test]
fn a_label_that_is_no_class_is_refused_with_its_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("train.parquet");
    let refusal = |label: Column| {
        write(&path, vec![images(&[1, 2, 3]), label]);
        open(&tables(folder.path())).expect_err("refused").to_string()
    };
    let secret = refusal(labels(&[0, 1, -1]));
    assert!(secret.contains("train.parquet, row 2 (3.png): the label is -1"), "{secret}");
    assert!(refusal(labels(&[0, -7, 1])).contains("row 1 (2.png): the label -7 is not a class"));
    assert!(refusal(labels(&[1 << 40, 0, 1])).contains("row 0 (1.png): the label 1099511627776 is not a class"));
    let missing = refusal(Series::new("label".into(), [Some(0i64), None, Some(1)]).into());
    assert!(missing.contains("row 1 (2.png): the row has no label"), "{missing}");
}

#[test]
fn a_damaged_row_names_the_file_the_row_and_the_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = png(5);
    let bytes = vec![Some(&b"GIF89a"[..]), Some(&whole[..]), None, Some(&whole[..30])];
    let paths = ["a.gif", "b.png", "c.png", "d.png"].map(str::to_owned);
    write(&folder.path().join("train.parquet"), vec![of_bytes(bytes, &paths), labels(&[0, 1, 0, 1])]);
    let opened = open(&tables(folder.path())).expect("the second image sets the shape");
    let mut pixels = [0; 6];
    let mut said = |index| opened.train.read(index, &mut pixels).expect_err("refused").to_string();
    let gif = said(0);
    assert!(gif.contains("train.parquet, row 0 (a.gif): the image cannot be read: neither PNG nor JPEG"), "{gif}");
    assert!(said(2).contains("row 2 (c.png): the row contains no bytes of an image"));
    assert!(said(3).contains("row 3 (d.png): the image cannot be read"));
    assert_eq!(opened.train.read(1, &mut pixels).expect("decoded"), 1);
}

#[test]
fn an_opened_set_has_a_title_and_its_bytes_become_numbers_from_minus_one_to_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = crate::data::open(&set(folder.path()), 1).expect("a data set");
    assert_eq!(data.title, "20 images from Parquet files, tested on 5");
    let mut numbers = [0.0; 6];
    assert_eq!(data.train.read(13, &mut Vec::new(), &mut numbers).expect("decoded"), 3);
    assert!(numbers.iter().all(|number| (number - (13.0 / 127.5 - 1.0)).abs() < 1e-6), "{numbers:?}");
}

#[test]
fn images_that_do_not_fit_in_memory_are_refused_with_how_many_would() {
    let room = |wanted, free| check_room(10 << 30, 1000, wanted, "examples", free);
    let free = Some(4 << 30);
    assert!(room(1000, None).is_ok() && room(360, free).is_ok());
    let error = room(1000, free).expect_err("refused");
    // By hand: nine tenths of 4 GiB hold 360 of 1,000 rows of 10 GiB.
    let said = error.to_string();
    assert!(said.contains("1000 rows take about 10.00 GiB, and 4.00 GiB of memory are free"), "{said}");
    assert!(error.is_out_of_memory() && said.contains("`examples = 360`"), "{said}");
}

/// Written by Hugging Face's `datasets`; see tests/fixtures/images/make.py.
fn hub() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/images/hub")
}

#[test]
fn a_data_set_of_hugging_faces_datasets_is_read_as_it_was_written() {
    let UnnormalisedSet { train, test, shape, classes, notices, .. } = open(&tables(&hub())).expect("a data set");
    let test = test.expect("a part for tests");
    // Three classes are declared, and two of them occur.
    assert_eq!((train.count(), test.count(), classes, notices.len()), (20, 6, 3, 0));
    assert_eq!(shape, Shape::Maps { channels: 3, height: 6, width: 8 });
    let mut bytes = vec![0; 3 * 48];
    for (source, first) in [(&train, 0), (&test, 20)] {
        for index in 0..source.count() {
            let number = first + index;
            let class = number % 2;
            assert_eq!(source.read(index, &mut bytes).expect("decoded"), class as u32);
            // As make.py paints them: PNG exactly; a JPEG of this content at Pillow's quality of 75 is within 8 levels.
            let value = if class == 0 { 40 + number } else { 180 + number };
            let allowed = if number % 5 == 4 { 8 } else { 0 };
            for at in 0..48 {
                for (channel, expected) in [value, value + at % 7, value + at / 8].into_iter().enumerate() {
                    let apart = usize::from(bytes[48 * channel + at]).abs_diff(expected);
                    assert!(apart <= allowed, "example {number}, pixel {at}, channel {channel}: {apart} apart");
                }
            }
        }
    }
    assert!(train.name(14).ends_with("train-00001-of-00002.parquet, row 4 (cat/14.jpeg)"), "{}", train.name(14));
}
