//! `batchstep doctor --fix`: the commands that mend what was found, in the order in which they help. Nothing is run.
//!
//! The text is a shell script: what needs a person is a comment.

use super::render::on_one_line;
use super::{Finding, Status};

/// Its version says which libraries fit.
const DRIVER: u8 = 0;

/// The earlier ones must work before the later ones can be judged; what makes measurements quiet comes last.
fn stage(finding: &Finding) -> u8 {
    match finding.subject.as_str() {
        "GPU driver" | "NVML" => DRIVER,
        "GPU libraries" => 2,
        subject if subject.starts_with("GPU") || subject.starts_with("PCIe link") => 1,
        "PyTorch" => 3,
        "CPU" | "memory" | "frequency governor" | "load" | "performance counters" => 4,
        _ => 2,
    }
}

/// The commands for findings that are missing or to look at, and then those that look again.
pub fn render_fix(findings: &[Finding]) -> String {
    let mut wrong: Vec<&Finding> =
        findings.iter().filter(|finding| finding.status != Status::Ok && finding.remedy.is_some()).collect();
    // Stable: within a stage the order of the findings stays.
    wrong.sort_by_key(|finding| stage(finding));
    if wrong.is_empty() {
        return "# Nothing that batchstep looks at needs fixing.\n".to_owned();
    }
    let mut text =
        String::from("# What `batchstep doctor` found, in the order in which to fix it. Nothing was changed.\n");
    for (number, finding) in wrong.iter().enumerate() {
        let Finding { subject, detail, remedy, commands, .. } = finding;
        text += &format!("\n# {}. {subject}: {}\n", number + 1, on_one_line(detail));
        match commands.is_empty() {
            true => text += &format!("#    by hand: {}\n", on_one_line(remedy.as_deref().unwrap_or_default())),
            false => text += &commands.iter().map(|command| format!("{command}\n")).collect::<String>(),
        }
    }
    text += match wrong.iter().any(|finding| stage(finding) == DRIVER) {
        true => "\n# What to install next depends on the driver: look again before going on.\nbatchstep doctor --fix\n",
        false => "\n# Look again.\nbatchstep doctor\n",
    };
    if findings.iter().any(|finding| finding.subject == "GPU 0") {
        text += "batchstep selftest --device cuda:0\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::doctor::judge::missing;

    fn finding(subject: &str, status: Status, commands: &[&str]) -> Finding {
        Finding { status, ..missing(subject, "why", Some("deed")) }.by(commands)
    }

    #[test]
    fn the_driver_comes_first_then_libraries_then_what_is_nice_to_have() {
        let findings = [
            finding("CPU", Status::Ok, &["never"]),
            finding("performance counters", Status::Missing, &["sudo sysctl kernel.perf_event_paranoid=1"]),
            finding("GPU driver", Status::Warning, &["sudo modprobe -r nvidia_uvm", "sudo modprobe nvidia_uvm"]),
            finding("PCIe link of GPU 0", Status::Warning, &[]),
            finding("PyTorch", Status::Missing, &["pip install torch"]),
            finding("GPU libraries", Status::Missing, &["pip install nvidia-cudnn-cu12"]),
            finding("GPU 0", Status::Ok, &[]),
        ];
        let expected = "# What `batchstep doctor` found, in the order in which to fix it. Nothing was changed.\n\n\
                        # 1. GPU driver: why\nsudo modprobe -r nvidia_uvm\nsudo modprobe nvidia_uvm\n\n\
                        # 2. PCIe link of GPU 0: why\n#    by hand: deed\n\n\
                        # 3. GPU libraries: why\npip install nvidia-cudnn-cu12\n\n\
                        # 4. PyTorch: why\npip install torch\n\n\
                        # 5. performance counters: why\nsudo sysctl kernel.perf_event_paranoid=1\n\n\
                        # What to install next depends on the driver: look again before going on.\nbatchstep doctor --fix\n\
                        batchstep selftest --device cuda:0\n";
        assert_eq!(render_fix(&findings), expected);
    }

    #[test]
    fn a_machine_that_lacks_nothing_has_nothing_to_mend_and_a_text_of_two_lines_is_a_comment_of_one() {
        assert_eq!(render_fix(&[finding("CPU", Status::Ok, &[])]), "# Nothing that batchstep looks at needs fixing.\n");
        let broken = finding("cuDNN", Status::Warning, &["pip install nvidia-cudnn-cu13"]);
        let text = render_fix(&[Finding { detail: "two\nlines".into(), ..broken }]);
        assert!(text.contains("# 1. cuDNN: two lines\npip install"), "{text}");
    }
}
