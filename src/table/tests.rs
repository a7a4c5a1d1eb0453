//! The reader as a whole: which columns it finds in small texts of each form, and what they hold.

use super::*;

/// The choice, x, the first y, notes.
type Read = (Choice, Vec<f64>, Vec<f64>, Vec<String>);

/// The columns that are chosen, and the first and last row of x and the first y.
fn read(text: &str, query: &Query) -> Result<Read> {
    read_bytes(text.as_bytes(), query)
}

/// The table in a file with these bytes, and its folder.
fn opened(bytes: &[u8]) -> Result<(tempfile::TempDir, Sheet)> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table");
    std::fs::write(&path, bytes).expect("written");
    Sheet::open(&path).map(|sheet| (folder, sheet))
}

fn read_bytes(bytes: &[u8], query: &Query) -> Result<Read> {
    let (_folder, sheet) = opened(bytes)?;
    let choice = sheet.choose(query)?;
    let (mut x, mut y) = (Vec::new(), Vec::new());
    sheet.scan(&[&choice.x, &choice.ys[0]], &mut |columns, _| {
        let numbers =
            |name: &str| columns.iter().find(|(own, _)| own == name).and_then(|(_, cells)| cells.numbers().ok());
        x.extend(numbers(&choice.x).unwrap_or_default());
        y.extend(numbers(&choice.ys[0]).unwrap_or_default());
        Ok(())
    })?;
    Ok((choice, x, y, sheet.notes().to_vec()))
}

/// x, the ys, the kind, rows: `n: ms (time), 3`.
fn found(text: &str) -> String {
    match read(text, &Query::default()) {
        Ok((choice, x, _, _)) => {
            format!("{}: {} ({}), {}", choice.x, choice.ys.join(" + "), choice.kind.name(), x.len())
        }
        Err(error) => format!("refused: {error}"),
    }
}

/// Rows `1,5.5`, `2,6` and so on, under a header.
fn table(header: &str) -> String {
    let row = |i: u32| format!("{},{}\n", 8 * i, 5.0 + 0.5 * f64::from(i));
    format!("{header}\n{}", (1..=6).map(row).collect::<String>())
}

#[test]
fn sizes_are_found_by_their_usual_names() {
    // All that are listed, and how people write them.
    let listed: Vec<&str> = amounts::NAMES.iter().flat_map(|(_, names)| names.split(' ')).collect();
    let written = [
        "B",
        "Batch Size (images)",
        "Sequence length [tokens]",
        "N_KV",
        "Size (MB)",
        "message size",
        "size_bytes",
        "working set",
        "N",
        "M",
        "K",
        "Param: dim",
        "matrix size",
        "parameter_batch",
        "queue depth",
        "Local batch",
        "output_tokens",
        "head_dim",
        "Concurrent requests",
        "Packet size",
        "Number of threads",
        "batchSize",
    ];
    let names = [&listed[..], &written].concat();
    let alone = |name: &str| found(&table(&format!("{name},time_ms")));
    // Also beside another column of whole numbers, which no name explains.
    let beside = |name: &str| {
        let row = |i: u32| format!("{},{},{}\n", 7 - i % 3, 8 * i, 5.0 + f64::from(i));
        found(&format!("aux,{name},time_ms\n{}", (1..=6).map(row).collect::<String>()))
    };
    for name in names {
        let expected = format!("{name}: time_ms (time), 6");
        assert_eq!((alone(name), beside(name)), (expected.clone(), expected));
    }
}

#[test]
fn rates_are_distinguished_from_times_by_their_names() {
    for rate in [
        "tg t/s",
        "S_PP t/s",
        "ops/s",
        "Mops/s",
        "GB/sec",
        "Gflops/sec",
        "seq/s",
        "bytes/sec",
        "elem/sec",
        "images per second",
        "tops",
        "GOPS",
        "nps",
        "avg_ts",
        "mfu",
        "TFLOPS (cuBLAS)",
        "gflops_js",
        "cuBLAS",
        "Triton",
        "throughput (nps)",
        "samples / s",
        "it/s",
        "GiB/s",
        "req/s",
        "Score (ops/ms)",
    ] {
        let read = found(&table(&format!("n,{rate}")));
        assert!(read.ends_with("(rate), 6"), "{rate}: {read}");
    }
    for time in [
        "time_ms",
        "s/it",
        "ms/step",
        "ns/op",
        "time/s",
        "t / ms",
        "Mean [s]",
        "latency",
        "ttft_ms",
        "elapsed",
        "seconds per step",
        "ms per token",
    ] {
        let read = found(&table(&format!("n,{time}")));
        assert!(read.ends_with("(time), 6"), "{time}: {read}");
    }
    let guess = |header: &str| read(&table(header), &Query::default()).expect("read").0.is_guess;
    assert!(guess("n,before") && guess("n,cuBLAS") && !guess("n,time") && !guess("n,t/s"));
    let query = Query { kind: Some(TimeOrRate::Time), ..Query::default() };
    assert_eq!(
        read(&table("n,tg t/s"), &Query { y: Some("tg t/s".into()), ..query }).expect("read").0.kind,
        TimeOrRate::Time
    );
}

#[test]
fn columns_are_chosen_by_their_contents() {
    for (text, expected) in [
        // Text that differs at the same x is left to the reader of the series; several values are several series.
        ("n,before,after\n8,1.5,1.6\n16,2.5,2.6\n24,3.5,3.6\n", "n: before + after (time), 3"),
        ("n,ours_ms,theirs_ms\n8,1.5,1.6\n16,2.5,2.6\n", "n: ours_ms + theirs_ms (time), 2"),
        ("n,mean_ms,p99_ms,std_ms\n8,1.5,1.6,0.1\n16,2.5,2.6,0.1\n", "n: mean_ms (time), 2"),
        ("wall time,Step,Value\n1700000000.5,1,0.5\n1700000001.5,2,0.6\n", "Step: Value (time), 2"),
        ("n,timestamp,latency\n8,1700000000,1.5\n16,1700000060,2.5\n", "n: latency (time), 2"),
        ("n,time,time\n8,1.5,1.6\n16,2.5,2.6\n", "n: time + time 2 (time), 2"),
        ("n,threads,ms\n8,1,1.5\n16,1,2.5\n24,1,2.5\n8,2,1.5\n16,2,2.5\n24,2,2.5\n", "n: ms (time), 6"),
        ("batch,seq_len,ms\n1,8,1.5\n1,16,2.5\n1,24,3.5\n", "seq_len: ms (time), 3"),
        ("quux,ms\n8,1.5\n16,2.5\n", "quux: ms (time), 2"),
        ("8,1.5\n16,2.5\n", "column 1: column 2 (time), 2"),
        ("tested on dev0 float32\nn,ms\n8,1.5\n16,2.5\n", "n: ms (time), 2"),
        ("#n,ms\n8,1.5\n16,2.5\n", "n: ms (time), 2"),
        ("# n ms\n8.0e+00 1.5e+00\n16 2.5\n", "n: ms (time), 2"),
        ("# n, ms\n\n1,2.5\n2,2.6\n", "n: ms (time), 2"),
        ("# made today\n8,1.5\n16,2.5\n", "column 1: column 2 (time), 2"),
        ("a,8,2.5\nb,16,2.6\n", "column 2: column 3 (time), 2"),
        ("n,ms,ms,\n8,2,3,4.5\n16,3,4,5.5\n", "n: ms + ms 2 (time), 2"),
        // By its place in the lines: what separates, what stands around the table, what has no name.
        ("n\tms\n1\t2,5\n2\t2,6\n", "n: ms (time), 2"),
        ("n ms\n1 2.5\n2 2.6\n", "n: ms (time), 2"),
        ("Before:\n\n| n | **ms** |\n|--:|:---:|\n| 1 | **2.5** |\n| 2 | 2.6 |\n\nThanks!\n", "n: ms (time), 2"),
        ("+---+-----+\n| n | ms  |\n+---+-----+\n| 1 | 2.5 |\n| 2 | 2.6 |\n+---+-----+\n", "n: ms (time), 2"),
        ("data set   exec time\n   2 kB   5 ms\n   4 kB   6 ms\n", "data set (kB): exec time (ms) (time), 2"),
        ("        size  Triton\n0     4096.0     8.5\n1     8192.0     9.5\n", "size: Triton (rate), 2"),
        (
            "       time_ms  tflops\nbatch                 \n8        4.5    0.9\n16       5.5    1.9\n24       6.5    2.9\n",
            "batch: time_ms (time), 3",
        ),
        (
            "name   old time    new time\nA/8    4.5 ms   5.5 ms   (p=0.1)\nA/16   6.5 ms   7.5 ms   (p=0.1)\nA/24   8.5 ms   9.5 ms   (p=0.1)\n",
            "name (number): old time (ms) + new time (ms) (time), 3",
        ),
        // A size in a name comes before a number that is none.
        ("config,loss,time_ms\nbs8,2,5.5\nbs16,3,6.5\nbs24,4,7.5\n", "config (number): time_ms (time), 3"),
        (
            "run,power_w,time_ms\nnet50-bs8,200.5,5.5\nnet50-bs16,201,6.5\nnet50-bs24,202,7.5\n",
            "run (number): time_ms (time), 3",
        ),
        (
            "name,mean,rounds\ntest_sort_8,5.5,193\ntest_sort_16,6.5,180\ntest_sort_24,7.5,170\n",
            "name (number): mean (time), 3",
        ),
        ("config,total,time_ms\nbs8,2.5,5.5\nbs16,3.5,6.5\nbs24,4.5,7.5\n", "config (number): time_ms (time), 3"),
        ("power_limit,time_ms\n100,5.5\n150,4.5\n200,3.5\n", "power_limit: time_ms (time), 3"),
        // Columns that compare others, and shares, are no measurements.
        (
            "M,main (us),PR (us),speedup\n8,1.5,1.2,1.25x\n16,2.5,2,1.25x\n24,3.5,2.5,1.4x\n",
            "M: main (us) + PR (us) (time), 3",
        ),
        ("n,speedup\n8,1.2\n16,1.5\n24,1.6\n", "n: speedup (rate), 3"),
        ("Time (%),Avg (ns),Name\n50,1.5,a_8\n30,2.5,a_16\n20,3.5,a_24\n", "Name (number): Avg (ns) (time), 3"),
        (
            "iteration,learning rate,global batch size,elapsed time (ms)\n1,0.1,8,1.5\n2,0.1,16,2.5\n3,0.2,24,3.5\n",
            "global batch size: elapsed time (ms) (time), 3",
        ),
        (
            "Step,run-a - batch_size,run-a - perf/step_time,run-a - perf/step_time__MIN\n1,8,1.5,1.4\n2,16,2.5,2.4\n3,24,3.5,3.4\n",
            "run-a - batch_size: run-a - perf/step_time (time), 3",
        ),
        ("| N | Mean |\n|--|--|\n| 1,000 | 0.5 ms |\n| 2,000 | 1.25 ms |\n", "N: Mean (ms) (time), 2"),
        ("globalStep,SamplesPerSec\n1,150.5\n2,151.5\n3,152.5\n", "globalStep: SamplesPerSec (rate), 3"),
        ("> | M | a |\n> |--|--|\n> | 8 | 1.5 ms |\n> | 16 | 2.5 ms |\n", "M: a (ms) (time), 2"),
        ("batch,time,rate\n,ms,img/s\n8,1.5,5\n16,2.5,6\n", "batch: time (ms) (time), 2"),
        ("| n | t |\n|--|--|\n| [-] | [ms] |\n| 8 | 1.5 |\n| 16 | 2.5 |\n", "n: t (ms) (time), 2"),
        ("||Batch||Time (ms)||\n|8|1.5|\n|16|2.5|\n", "Batch: Time (ms) (time), 2"),
        // criterion's raw.csv.
        (
            "group,function,value,sample_measured_value,unit,iteration_count\na,f,8,3000,ns,2\na,f,16,8000,ns,4\na,f,24,9000,ns,3\n",
            "size: time (ns) (time), 3",
        ),
        (
            "group,function,value,sample_measured_value,unit,iteration_count\na,sort8,,3000,ns,2\na,sort16,,8000,ns,4\na,sort24,,9000,ns,3\n",
            "function (number): time (ns) (time), 3",
        ),
    ] {
        assert_eq!(found(text), expected, "{text}");
    }
    let refused = found("alpha,beta,ms\n8,7,1.5\n16,15,2.5\n24,29,3\n");
    assert!(refused.contains("several columns could be the size: alpha, beta") && refused.contains("--x"), "{refused}");
    let refused = found("test,rps,avg_latency_ms\nGET,99.5,0.25\nSET,98.5,0.35\n");
    assert!(refused.contains("a row for each size") && !refused.contains("--x"), "{refused}");
    for (line, said) in [("5", "has 1 fields"), ("5,6,7", "decimal commas")] {
        let refused = found(&format!("n,ms\n1,2\n2,3\n{line}\n"));
        assert!(refused.starts_with("refused: ") && refused.contains(said), "{refused}");
    }
    let text = "n,ms\n8,1.5\n16,2.5\n";
    let asked =
        |y: &str| read(text, &Query { y: Some(y.into()), ..Query::default() }).map(|_| ()).map_err(|e| e.to_string());
    assert!(asked("mz").is_err_and(|said| said.contains("did you mean `ms`?")));
}

#[test]
fn cells_are_read_as_people_write_them() {
    let read = |text: &str| {
        let (_, x, y, _) = read(text, &Query::default()).expect(text);
        (x, y.into_iter().map(|y| if y.is_nan() { -1.0 } else { y }).collect::<Vec<f64>>())
    };
    let (x, y) = (vec![8.0, 16.0, 24.0], vec![1.5, 2.5, 3.5]);
    for text in [
        "n,latency\n8,1.5 ms\n16,2.5 ms\n24,0.0035 s\n",
        "n;time_ms\r\n8;1,5\r\n16;2,5\r\n24;3,5\r\n",
        "| n | t |\n|---|---|\n| 8 | **1.5** |\n| 16 | 2.5 ± 0.1 |\n| 24 | 3.5 |\n",
        "n   exec time\n8 kB   1.5 ms\n16 kB   2.5 ms\n24 kB   3.5 ms\n",
        "shape,ms\n8x512,1.5\n16x512,2.5\n24x512,3.5\n",
        "shape,ms\n\"torch.Size([1, 8])\",1.5\n\"torch.Size([1, 16])\",2.5\n\"torch.Size([1, 24])\",3.5\n",
        "n,8,16,24\nms,1.5,2.5,3.5\n",
        "bs8,bs16,bs24\n1.5,2.5,3.5\n",
    ] {
        assert_eq!(read(text), (x.clone(), y.clone()), "{text}");
    }
    assert_eq!(read("n,us\n1,\"1,204.5\"\n2,\"2,345\"\n").1, [1204.5, 2345.0]);
    assert_eq!(read("n,ms\n2^4,1\n2^5,2\n2^6,3\n").0, [16.0, 32.0, 64.0]);
    assert_eq!(read("n,ms\n512,1\n1K,2\n64Ki,3\n").0, [512.0, 1024.0, 65536.0]);
    assert_eq!(
        read("n,ms\n1,1\n2,OOM\n3,\n4,CUDA error: a, b\n5,2\n6,3\n7,4\n").1,
        [1.0, -1.0, -1.0, -1.0, 2.0, 3.0, 4.0]
    );
}

#[test]
fn a_second_table_and_text_behind_a_table_are_left_out_with_a_note() {
    for behind in ["n,ms\n8,9\n", "\nsize,score\n8,9\n", "\n3 sizes in 5 s\n", "\n5,6,7\n", "done\n"] {
        let (_, x, _, notes) =
            read(&format!("n,ms\n8,1.5\n16,2.5\n24,3.5\n{behind}"), &Query::default()).expect(behind);
        assert_eq!((x.len(), notes.len()), (3, 1), "{behind}: {notes:?}");
        assert!(notes[0].contains("line 5") || notes[0].contains("line 6"), "{notes:?}");
    }
}

#[test]
#[ignore = "slow"]
fn a_large_table_is_read_a_stretch_at_a_time_with_the_same_answer() {
    let rows: u32 = 1_700_000;
    let mut text = String::from("# made\nbatch,label,time_ms\n");
    (0..rows).for_each(|i| text.push_str(&format!("{},a,{}\n", i % 64 + 1, i % 64)));
    assert!(text.len() as u64 > super::WHOLE / 2);
    text.push_str(&"9,a,-\n".repeat(900_000));
    assert!(text.len() as u64 > super::WHOLE);
    text.push_str("batch,label,time_ms\n9,a,5\n");
    let (choice, x, y, notes) = read(&text, &Query::default()).expect("read");
    assert!(notes.len() == 1 && notes[0].starts_with("the table ends before line 2600003:"), "{notes:?}");
    assert_eq!((choice.x.as_str(), choice.ys[0].as_str()), ("batch", "time_ms"));
    assert_eq!((x.len(), y.iter().filter(|y| y.is_finite()).count()), (2_600_000, rows as usize));
}

#[test]
fn a_merged_cell_is_that_of_the_rows_below_it_unless_it_is_a_value_of_its_own() {
    let merged = "| gpu | n | ms |\n|--|--|--|\n| a | 8 | 1.5 |\n| | 16 | 2.5 |\n| b | 8 | 1.2 |\n| | 16 | 2.2 |\n";
    let repeated = "gpu,n,ms\nhalf,8,1.5\nhalf,16,2.5\n,8,1.2\n,16,2.2\n";
    for (text, cells) in [(merged, ["a", "a", "b", "b"]), (repeated, ["half", "half", "", ""])] {
        assert_eq!(read(text, &Query::default()).expect("read").0.keys, ["gpu"]);
        let mut found = Vec::new();
        let mut keep = |columns: Vec<(String, Cells)>, _: Vec<usize>| {
            found.extend((0..columns[0].1.len()).map(|row| columns[0].1.get(row).to_string()));
            Ok(())
        };
        opened(text.as_bytes()).expect("a table").1.scan(&["gpu"], &mut keep).expect("read");
        assert_eq!(found, cells);
    }
}

#[test]
fn thousands_beside_semicolons_are_read_by_what_the_table_shows() {
    for (text, times) in [
        ("Batch;Zeit_ms\n960;15,68\n1.024;16,2\n1.088;1.016,5\n", vec![15.68, 16.2, 1016.5]),
        ("batch;time_ms\n960;15.68\n\"1,024\";16.2\n\"1,088\";17.5\n", vec![15.68, 16.2, 17.5]),
    ] {
        let (_, x, y, _) = read(text, &Query::default()).expect(text);
        assert_eq!((x, y), (vec![960.0, 1024.0, 1088.0], times), "{text}");
    }
    // Three digits behind a point, and no decimal comma.
    let (_, x, y, _) = read("n;ms\n1;5.227\n2;5.431\n3;5.601\n", &Query::default()).expect("read");
    assert_eq!((x, y), (vec![1.0, 2.0, 3.0], vec![5.227, 5.431, 5.601]));
}

#[test]
fn a_time_that_is_not_read_is_named_with_a_cell() {
    let text = "n,time\n8,00:00:05.2\n16,00:00:06.3\n24,00:00:07.4\n";
    let refused = found(text);
    assert!(refused.contains("`time` holds `00:00:05.2`, which is not read as a number"), "{refused}");
    let query = Query { y: Some("time".into()), ..Query::default() };
    assert!(read(text, &query).is_err_and(|error| error.to_string().contains("contains text")));
}

#[test]
fn a_quote_that_is_not_closed_is_refused() {
    let rows = |n: u32| format!("a,{n},{n}.5\n");
    let text = format!(
        "label,n,ms\n{}\"{}",
        (1..=6).map(|i| rows(8 * i)).collect::<String>(),
        (7..=12).map(|i| rows(8 * i)).collect::<String>()
    );
    let refused = found(&text);
    assert!(refused.contains("a quote in this row is not closed: 5 rows belong to its text"), "{refused}");
    let closed = "n,ms,error\n8,1.5,\n16,2.5,\"a\nb\nc\"\n24,3.5,\n";
    assert_eq!(found(closed), "n: ms (time), 3");
}

#[test]
fn states_of_nvbench_are_told_apart_by_their_device() {
    let state = |device: u32, n: u32, skipped: bool| {
        format!(
            r#"{{"device": {device}, "is_skipped": {skipped}, "axis_values": [{{"name": "Elements", "value": "{n}"}}],
                "summaries": [{{"tag": "nv/cold/time/gpu/mean", "data": [{{"name": "value", "value": "{n}.5"}}]}}]}}"#
        )
    };
    let states: Vec<String> =
        [0, 1].iter().flat_map(|&device| [2, 4, 6].map(|n| state(device, n, device == 1 && n == 6))).collect();
    let text = format!(
        r#"{{"devices": [{{"id": 0, "name": "one"}}, {{"id": 1, "name": "two"}}],
            "benchmarks": [{{"name": "copy", "states": [{}]}}]}}"#,
        states.join(",")
    );
    let (choice, x, y, _) = read(&text, &Query::default()).expect("read");
    assert!(choice.keys.contains(&"device".to_string()), "{:?}", choice.keys);
    assert_eq!((x, &y[..5], y[5].is_nan()), (vec![2.0, 4.0, 6.0, 2.0, 4.0, 6.0], &[2.5, 4.5, 6.5, 2.5, 4.5][..], true));
}

#[test]
fn lines_of_text_between_rows_are_left_out_with_a_note() {
    let noise = "CPU frequency: 1400.5 != 2600.5, not the same\n";
    let text = format!(
        "#bytes  #iterations  t_avg[usec]\n{noise}8   100   1.5\n{noise}16   100   2.5\n{noise}24   100   3.5\n"
    );
    let (choice, x, y, notes) = read(&text, &Query::default()).expect("a table");
    assert_eq!((choice.x.as_str(), x, y), ("bytes", vec![8.0, 16.0, 24.0], vec![1.5, 2.5, 3.5]));
    assert_eq!(notes, ["2 lines of text between rows are left out"]);
    // A long number leaves one blank, and a row that lacks a value says nothing but its size.
    let text = "#bytes  #iterations  min[usec]  avg[usec]\n8   100   1.5   2.5\n1048576 100   3.5   4.5\n2097152   100   OOM\n4194304   100   5.5   6.5\n";
    let (_, x, y, _) = read(text, &Query { y: Some("avg[usec]".into()), ..Query::default() }).expect("a table");
    assert_eq!((x[1], y[1], y[2].is_nan(), y[3]), (1_048_576.0, 4.5, true, 6.5));
    // Sizes that begin again belong to another table.
    let (_, x, _, notes) =
        read("n  ms\n8  1.5\n16  2.5\nThe new device:\n8  1.2\n16  2.2\n", &Query::default()).expect("a table");
    assert!(x.len() == 2 && notes[0].contains("line 4"), "{notes:?}");
}

#[test]
fn the_unit_of_a_score_says_whether_it_is_a_time_or_a_rate() {
    let one = |n: u32, unit: &str| {
        format!(
            r#"{{"benchmark": "a.B.run", "params": {{"n": "{n}"}}, "primaryMetric": {{"score": {n}.5, "scoreUnit": "{unit}", "rawData": [[{n}.5, {n}.6]]}}}}"#
        )
    };
    for (unit, expected) in [
        ("ms/op", "n: score (ms) (time), 6"),
        ("us/op", "n: score (us) (time), 6"),
        ("s/op", "n: score (s) (time), 6"),
        ("ops/s", "n: score (ops/s) (rate), 6"),
        ("ops/ms", "n: score (ops/ms) (rate), 6"),
    ] {
        let all = [8, 16, 24].map(|n| one(n, unit)).join(",");
        assert_eq!(found(&format!("[{all}]")), expected, "{unit}");
    }
}

/// A recorded sample of each format.
fn samples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tables");
    let mut samples: Vec<PathBuf> =
        folder.read_dir().expect("samples").map(|entry| entry.expect("an entry").path()).collect();
    samples.retain(|path| path.is_file() && !path.ends_with("answers"));
    samples.sort();
    samples
}

/// Every recorded sample of a format, flipped, cut and doubled: an answer or a refusal, and no panic.
#[test]
#[ignore = "slow"]
fn no_change_of_a_sample_is_too_much() {
    let mut state = 20u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    for sample in samples() {
        let bytes = std::fs::read(sample).expect("readable");
        for _ in 0..25 {
            let mut changed = bytes.clone();
            for _ in 0..=random(4) {
                let at = random(changed.len() + 1);
                match random(5) {
                    0 => changed.truncate(at),
                    1 if at < changed.len() => changed[at] = random(256) as u8,
                    2 if at < changed.len() => changed[at] ^= 1 << random(8),
                    3 => drop(changed.splice(at..at, b"\n|1,2|\t\"\xff{[ \xc2\xb1".iter().copied())),
                    _ => changed.extend_from_within(at..(at + random(60)).min(changed.len())),
                }
            }
            if let Err(error) = read_bytes(&changed, &Query::default()) {
                assert!(error.to_string().chars().count() < 3000, "{error}");
            }
        }
    }
}

/// What is read of each sample: its x, its columns of values, whether these are times, its rows, and the first and last x and first y.
#[test]
fn every_format_has_a_sample_with_its_answer() {
    let answers = include_str!("../../tests/fixtures/tables/answers");
    let mut found = String::new();
    for sample in samples() {
        let text = std::fs::read_to_string(&sample).expect("readable");
        let name = sample.file_name().expect("a name").to_string_lossy().into_owned();
        let (_, x, mut y, _) = read(&text, &Query::default()).expect(&name);
        // What was skipped has no time, and is left out with a warning.
        y.retain(|time| !time.is_nan());
        assert!(x.iter().chain(&y).all(|number| number.is_finite()), "{name}");
        let ends = |numbers: &[f64]| format!("{}..{}", numbers[0], numbers[numbers.len() - 1]);
        found.push_str(&format!("{name}: {}; {}; {}\n", self::found(&text), ends(&x), ends(&y)));
    }
    assert_eq!(found, answers, "found:\n{found}");
}

/// Numbers whose name says nothing are a setting where each of a few is at every size, and a covariate where it is not.
#[test]
fn numbers_at_every_size_are_the_levels_of_a_setting() {
    let keys = |name: &str, of: &dyn Fn(u32, u32) -> f64| {
        let row =
            |size: u32, visit: u32| format!("{size},{},{visit},{}\n", of(size, visit), 5.0 + 0.2 * f64::from(size));
        let rows: String = (1..=16).flat_map(|size| (0..4).map(move |visit| row(size, visit))).collect();
        read(&format!("batch,{name},block,time_ms\n{rows}"), &Query::default()).expect("read").0.keys
    };
    let half = |_: u32, visit: u32| f64::from(visit % 2);
    assert_eq!(keys("fused", &half), ["fused"]);
    assert_eq!(keys("version", &|_, visit| 2.0 + 0.5 * f64::from(visit % 2)), ["version"]);
    // Another number at each size, two that are not everywhere, one of them seldom, and a name of repetitions.
    let none: [&str; 0] = [];
    assert_eq!(keys("cost", &|size, _| f64::from(size)), none);
    assert_eq!(keys("room", &|size, _| f64::from(size / 9)), none);
    assert_eq!(keys("degrees", &|size, visit| f64::from(u32::from(size == 3 && visit == 1))), none);
    assert_eq!(keys("seed", &half), none);
}
