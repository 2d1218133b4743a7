//! Capture files: their layout, and that they are whole or absent.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use firstflight_pcap::{CaptureFile, Direction, Format, Record, Writer};

const LATE: Record = Record { time_ns: 5_000_000_007, interface: 1, direction: Direction::Outbound };

fn written(format: Format, packets: &[&[u8]]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), format, "program 1.0", "what it is", &["left", "right"]).unwrap();
    for packet in packets {
        writer.write(&LATE, packet, packet.len() as u32).unwrap();
    }
    writer.finish().unwrap()
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The blocks of a pcapng file: type and body.
fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
    let mut blocks = Vec::new();
    while !file.is_empty() {
        let length = word(file, 4) as usize;
        assert_eq!(length % 4, 0);
        assert_eq!(word(file, length - 4) as usize, length, "both lengths of a block are the same");
        blocks.push((word(file, 0), &file[8..length - 4]));
        file = &file[length..];
    }
    blocks
}

/// The options of a block, from `at` on: code and value.
fn options(body: &[u8], mut at: usize) -> Vec<(u16, Vec<u8>)> {
    let mut options = Vec::new();
    loop {
        let [code, length] = [at, at + 2].map(|at| u16::from_le_bytes(body[at..at + 2].try_into().unwrap()));
        if code == 0 {
            assert_eq!((length, at + 4), (0, body.len()));
            return options;
        }
        options.push((code, body[at + 4..at + 4 + usize::from(length)].to_vec()));
        at += 4 + usize::from(length).next_multiple_of(4);
    }
}

#[test]
fn pcapng_names_program_and_interfaces_and_keeps_nanoseconds() {
    let file = written(Format::Pcapng, &[b"12345", b"1234"]);
    let blocks = blocks(&file);
    assert_eq!(blocks.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [0x0a0d_0d0a, 1, 1, 6, 6]);
    assert_eq!(word(blocks[0].1, 0), 0x1a2b_3c4d);
    assert_eq!(options(blocks[0].1, 16), [(1, b"what it is".to_vec()), (4, b"program 1.0".to_vec())]);
    // Raw IP; if_name, and if_tsresol of 10^-9.
    assert_eq!(word(blocks[2].1, 0), 101);
    assert_eq!(options(blocks[2].1, 8), [(2, b"right".to_vec()), (9, vec![9])]);
    let packet = blocks[3].1;
    let time = u64::from(word(packet, 4)) << 32 | u64::from(word(packet, 8));
    assert_eq!((word(packet, 0), time), (1, 5_000_000_007));
    assert_eq!([word(packet, 12), word(packet, 16)], [5, 5]);
    assert_eq!(&packet[20..25], b"12345");
    assert_eq!(options(packet, 28), [(2, vec![2, 0, 0, 0])]);
}

#[test]
fn pcap_has_the_magic_of_nanoseconds() {
    let file = written(Format::Pcap, &[b"12345", b"1234"]);
    assert_eq!(word(&file, 0), 0xa1b2_3c4d);
    assert_eq!(file[4..8], [2, 0, 4, 0]);
    assert_eq!(word(&file, 20), 101);
    assert_eq!([24, 28, 32, 36].map(|at| word(&file, at)), [5, 7, 5, 5]);
    assert_eq!(&file[40..45], b"12345");
    assert_eq!(word(&file, 45 + 8), 4);
    assert_eq!(file.len(), 24 + 16 + 5 + 16 + 4);
}

#[test]
fn the_ending_of_the_name_chooses_the_format() {
    assert_eq!(Format::of(Path::new("a/b.pcap")), Format::Pcap);
    assert_eq!(Format::of(Path::new("a/b.PCAP")), Format::Pcap);
    assert_eq!(Format::of(Path::new("a.pcap/b.pcapng")), Format::Pcapng);
    assert_eq!(Format::of(Path::new("trace")), Format::Pcapng);
}

/// A directory that goes with the test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("firstflight-pcap-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Place(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn a_file_takes_its_place_only_when_it_is_whole() {
    let place = Place::new("whole");
    let path = place.0.join("x.pcap");
    fs::write(&path, "earlier").unwrap();
    let mut file = CaptureFile::create(&path, "", &["link"]).unwrap();
    file.write(&LATE, b"1234", 4).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"earlier");
    file.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap().len(), 24 + 16 + 4);
    assert_eq!(place.names(), ["x.pcap"]);
}

#[test]
fn an_unfinished_file_leaves_what_was_there() {
    let place = Place::new("unfinished");
    let path = place.0.join("x.pcapng");
    fs::write(&path, "earlier").unwrap();
    drop(CaptureFile::create(&path, "", &["link"]).unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"earlier");
    assert_eq!(place.names(), ["x.pcapng"]);
}

#[test]
fn a_place_that_is_not_there_is_one_sentence() {
    let refused = CaptureFile::create(Path::new("/no/such/place/x.pcap"), "", &[]).unwrap_err();
    assert_eq!(refused.to_string(), "/no/such/place/x.pcap cannot be written: No such file or directory (os error 2)");
}

#[test]
fn what_the_stream_refuses_is_passed_on() {
    #[derive(Debug)]
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let refused = Writer::new(Full, Format::Pcapng, "program", "", &[]).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
}
