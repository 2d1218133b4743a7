//! The project's own scripts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A script of the project.
pub struct Script {
    /// Below `tests/packet_scripts`.
    pub path: String,
    pub text: String,
}

/// All of them, sorted by path; read once.
pub fn own_scripts() -> &'static [Script] {
    static SCRIPTS: OnceLock<Vec<Script>> = OnceLock::new();
    SCRIPTS.get_or_init(read)
}

fn read() -> Vec<Script> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/packet_scripts");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    assert!(!files.is_empty(), "there are no scripts in {}", root.display());
    let script = |file: &PathBuf| Script {
        path: file.strip_prefix(&root).unwrap().display().to_string(),
        text: fs::read_to_string(file).unwrap(),
    };
    files.iter().map(script).collect()
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            files.push(path);
        }
    }
}
