use std::time::{Duration, Instant, SystemTime};

use sha2::{Digest, Sha256};

use super::*;
use crate::driver::files::tests::TestDirectory;
use crate::transport::chunks::{Slice, Stored};

fn offer(content: &[u8]) -> Offer {
    let hash = Sha256::digest(content).into();
    Offer { id: 0, size: content.len() as u64, slice_bytes: 512, hash, label: "".into() }
}

fn content(seed: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at / 7) as u8 ^ seed).collect()
}

fn put(assembly: &mut Assembly, offer: &Offer, content: &[u8], slices: impl IntoIterator<Item = u32>) {
    for index in slices {
        let place = offer.slice(index);
        assembly.handle(offer, index, &content[place.start as usize..place.end as usize]).unwrap();
    }
}

fn finish(mut assembly: Assembly) -> Option<PathBuf> {
    assert!(assembly.hash_on(&mut u64::MAX.clone()).unwrap());
    assembly.finish().unwrap().map(|stored| match stored {
        Stored::File(path) => path,
        other => panic!("{other:?}"),
    })
}

fn receive(store: &mut DirectoryStore, content: &[u8]) -> PathBuf {
    let offer = offer(content);
    let mut assembly = store.open(0, &offer).unwrap();
    put(&mut assembly, &offer, content, 0..offer.slices());
    finish(assembly).unwrap()
}

#[test]
fn a_file_has_its_name_when_it_is_whole() {
    let directory = TestDirectory::new("whole");
    let mut store = DirectoryStore::new(directory.0.join("in"), 10, 100).unwrap();
    assert_eq!(store.open(0, &offer(&[0; 11])).unwrap_err(), Rejection::TooLarge);
    for content in [&b"0123456789"[..], b""] {
        let offer = offer(content);
        let unfinished = store.open(0, &offer).unwrap();
        let path = receive(&mut store, content);
        drop(unfinished);
        assert_eq!(std::fs::read(&path).unwrap(), content);
        assert_eq!(path.file_name().unwrap().to_str().unwrap(), hex(&offer.hash));
    }
    assert_eq!(std::fs::read_dir(directory.0.join("in")).unwrap().count(), 2);
}

/// Offers the content of a complete file again: whether it is reused, and whether it was hashed for that.
fn reuse(store: &mut DirectoryStore, client_id: u64, offer: &Offer) -> Option<(bool, bool)> {
    let mut assembly = store.open(client_id, offer).unwrap();
    if !assembly.runs(9).iter().any(|run| *run == (0, offer.slices())) {
        return None;
    }
    let (allowed, mut left) = (1 << 30, 1 << 30);
    assert!(assembly.hash_on(&mut left).unwrap());
    let taken = matches!(assembly.finish(), Ok(Some(Stored::Reused(_))));
    Some((taken, left < allowed))
}

#[test]
fn a_whole_file_is_not_received_again() {
    let directory = TestDirectory::new("reused");
    let content = content(4, 20_000);
    let offer = offer(&content);
    let new = || DirectoryStore::new(directory.0.clone(), 1 << 20, 1 << 20).unwrap();
    let mut store = new();
    let path = receive(&mut store, &content);
    assert_eq!(reuse(&mut store, 0, &offer), Some((true, false)), "it was hashed as it came");
    // Another process hashes it, once.
    let mut store = new();
    assert_eq!(reuse(&mut store, 0, &offer), Some((true, true)));
    assert_eq!(reuse(&mut store, 0, &offer), Some((true, false)));
    // A changed file is hashed once more, and then received again.
    let mut bad = content.clone();
    bad[7] ^= 1;
    for changed in [bad.clone(), content[1..].to_vec()] {
        std::fs::write(&path, &changed).unwrap();
        let touched = std::fs::File::options().write(true).open(&path).unwrap();
        touched.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let seems_so = changed.len() == content.len();
        assert_eq!(reuse(&mut store, 0, &offer), seems_so.then_some((false, true)));
        assert_eq!(reuse(&mut store, 0, &offer), None);
        assert_eq!(std::fs::read(&path).unwrap(), changed, "the game's own is not removed");
    }
    receive(&mut store, &content);
    assert_eq!(std::fs::read(&path).unwrap(), content);
    assert_eq!(reuse(&mut store, 0, &offer), Some((true, false)));
    // One that goes or changes while it is hashed is not taken.
    let mut store = new();
    let mut assembly = store.open(0, &offer).unwrap();
    assert!(assembly.hash_on(&mut u64::MAX.clone()).unwrap());
    // Not removed: some systems keep the name of an open file until it is closed.
    let aside = directory.0.join("aside");
    std::fs::rename(&path, &aside).unwrap();
    assert!(assembly.finish().is_err());
    std::fs::remove_file(&aside).unwrap();
    assembly = store.open(0, &offer).unwrap();
    assert!(assembly.runs(9).is_empty());
    let empty = super::tests::offer(b"");
    receive(&mut store, b"");
    assert_eq!(reuse(&mut store, 0, &empty), Some((true, false)));
}

#[test]
fn a_client_does_not_find_out_what_others_sent() {
    let directory = TestDirectory::new("whose");
    let content = content(5, 20_000);
    let offer = offer(&content);
    let new = || DirectoryStore::new(directory.0.clone(), 1 << 20, 1 << 20).unwrap().per_client();
    let mut store = new();
    receive(&mut store, &content);
    for stranger in [1, 2, u64::MAX] {
        assert_eq!(reuse(&mut store, stranger, &offer), None);
    }
    assert_eq!(reuse(&mut store, 0, &offer), Some((true, false)), "who sent it need not again");
    assert_eq!(reuse(&mut new(), 0, &offer), None, "and nothing is read that this process didn't receive");
}

#[cfg(unix)]
#[test]
fn a_file_with_the_size_and_time_of_another_is_not_taken_for_it() {
    let directory = TestDirectory::new("print");
    let path = directory.0.join("file");
    std::fs::write(&path, b"1").unwrap();
    let (print, time) = (Print::of(&path, 1).unwrap(), std::fs::metadata(&path).unwrap().modified().unwrap());
    let other = directory.0.join("other");
    std::fs::write(&other, b"2").unwrap();
    std::fs::File::options().write(true).open(&other).unwrap().set_modified(time).unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().modified().unwrap(), time);
    assert_ne!(Print::of(&path, 1), Some(print));
}

#[test]
fn a_file_that_another_client_sent_since_is_still_the_first_ones() {
    let directory = TestDirectory::new("since");
    let path = directory.0.join("file");
    std::fs::write(&path, b"1").unwrap();
    let known = KnownFiles::default();
    known.note(([0; 32], 7), Print::of(&path, 1), true);
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(9);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
    let print = Print::of(&path, 1).unwrap();
    assert_eq!(known.get(&([0; 32], 7), print), None, "it may be anything");
    known.note(([0; 32], 8), Some(print), true);
    assert_eq!(known.get(&([0; 32], 7), print), Some(true), "or else 7 would find out about 8");
}

#[test]
fn what_is_known_of_files_is_bounded() {
    let directory = TestDirectory::new("known");
    let path = directory.0.join("file");
    std::fs::write(&path, b"1").unwrap();
    let (known, print) = (KnownFiles::default(), Print::of(&path, 1).unwrap());
    (0..40_000).for_each(|client| known.note(([0; 32], client), Some(print), true));
    let there = (0..40_000).filter(|client| known.get(&([0; 32], *client), print).is_some());
    assert_eq!(there.collect::<Vec<_>>(), (40_000 - 16_384..40_000).collect::<Vec<_>>());
}

#[test]
fn another_process_goes_on_with_what_is_there() {
    let directory = TestDirectory::new("resumed");
    let content = content(1, 100_000);
    let offer = offer(&content);
    let mut store = DirectoryStore::new(directory.0.clone(), 1 << 20, 1 << 20).unwrap();
    let mut assembly = store.open(7, &offer).unwrap();
    put(&mut assembly, &offer, &content, (3..90).chain([195]));
    drop((assembly, store));

    let mut store = DirectoryStore::new(directory.0.clone(), 1 << 20, 1 << 20).unwrap();
    let mut resumed = store.open(7, &offer).unwrap();
    assert_eq!(resumed.runs(9), [(3, 87), (195, 1)]);
    assert_eq!(resumed.bytes(), 87 * 512 + 100_000 - 195 * 512);
    // While it is in use, other processes and other peers start their own.
    for peer in [7, 8] {
        assert!(store.open(peer, &offer).unwrap().runs(9).is_empty());
    }
    put(&mut resumed, &offer, &content, (0..3).chain(90..195));
    assert_eq!(std::fs::read(finish(resumed).unwrap()).unwrap(), content);
    assert_eq!(directory.names(), [hex(&offer.hash)]);
}

#[cfg(not(windows))] // There a file in use can't be copied.
#[test]
fn a_killed_process_loses_the_last_slices_only() {
    let directory = TestDirectory::new("killed");
    let content = content(2, 400_000);
    let offer = offer(&content);
    let mut store = DirectoryStore::new(directory.0.clone(), 1 << 20, 1 << 20).unwrap();
    let mut assembly = store.open(7, &offer).unwrap();
    put(&mut assembly, &offer, &content, 0..700);
    // As for a copied file.
    let copy = TestDirectory::new("killed-copy");
    for name in directory.names() {
        std::fs::copy(directory.0.join(&name), copy.0.join(&name)).unwrap();
    }
    let mut store = DirectoryStore::new(copy.0.clone(), 1 << 20, 1 << 20).unwrap();
    assert_eq!(store.open(7, &offer).unwrap().runs(9), [(0, 512)]);
}

#[test]
fn a_note_that_lies_is_found_out_and_one_that_does_not_fit_is_left_alone() {
    let directory = TestDirectory::new("lies");
    let content = content(3, 19_000);
    let offer = offer(&content);
    let mut store = DirectoryStore::new(directory.0.clone(), 1 << 20, 1 << 20).unwrap();
    let begin = |store: &mut DirectoryStore| {
        let mut assembly = store.open(7, &offer).unwrap();
        put(&mut assembly, &offer, &content, 0..1);
    };
    begin(&mut store);
    let path = part_paths(&directory.0.join(hex(&offer.hash)), 7).next().unwrap();
    let good = std::fs::read(&path).unwrap();
    let bits = good.len() - 5;
    let (mark, size, slice_bytes) = (19_000, 19_008, 19_016);
    for changed in [mark, size, slice_bytes, good.len() - 1] {
        let mut bad = good.clone();
        bad[changed] ^= 0x80;
        std::fs::write(&path, &bad).unwrap();
        assert!(store.open(7, &offer).unwrap().runs(9).is_empty(), "byte {changed}");
        assert_eq!(std::fs::read(&path).unwrap(), bad, "and it is left alone");
    }
    for length in [0, 19_000, good.len() - 1] {
        std::fs::write(&path, &good[..length]).unwrap();
        assert!(store.open(7, &offer).unwrap().runs(9).is_empty(), "{length} bytes");
    }
    let mut lie = good.clone();
    lie[bits] |= 0b110;
    std::fs::write(&path, &lie).unwrap();
    let mut assembly = store.open(7, &offer).unwrap();
    assert_eq!(assembly.runs(9), [(0, 3)]);
    put(&mut assembly, &offer, &content, 3..38);
    assert_eq!(finish(assembly), None);
    assert!(directory.names().is_empty(), "what is not the content is not kept");
    begin(&mut store);
    assert_eq!(std::fs::read(&path).unwrap(), good);
}

#[test]
fn all_files_together_keep_to_the_limit() {
    let directory = TestDirectory::new("limit");
    std::fs::write(directory.0.join("not-a-chunk"), [0; 5000]).unwrap();
    let limited = || DirectoryStore::new(directory.0.clone(), 1000, 3100).unwrap();
    let open = |store: &mut DirectoryStore, content: &[u8]| {
        lock(&store.space).look_after = None;
        store.open(0, &offer(content))
    };
    let [first, second, third, more] = [1, 2, 3, 4].map(|seed| content(seed, 1000));
    let mut store = limited();
    receive(&mut store, &first);
    let mut under_way = open(&mut store, &second).unwrap();
    put(&mut under_way, &offer(&second), &second, 0..1);
    receive(&mut store, &third);
    assert_eq!(open(&mut store, &more).unwrap_err(), Rejection::NoRoom);
    assert_eq!(open(&mut limited(), &[0; 100]).unwrap_err(), Rejection::NoRoom, "another one counts too");
    under_way.discard();
    open(&mut store, &more).unwrap();
}

/// The outcomes of some slices of a content.
fn outcomes(assembly: &mut Assembly, content: &[u8], slices: impl IntoIterator<Item = u32>) -> Vec<Slice> {
    let offer = offer(content);
    let slices = slices.into_iter().map(|index| {
        let place = offer.slice(index);
        assembly.handle(&offer, index, &content[place.start as usize..place.end as usize]).unwrap()
    });
    slices.collect()
}

#[cfg(unix)]
#[test]
fn a_slice_takes_all_blocks_that_it_starts() {
    let directory = TestDirectory::new("blocks");
    let limit = (96 << 10) + 100;
    let mut store = DirectoryStore::new(directory.0.clone(), 64 << 10, limit).unwrap();
    let [first, second, third] = [1, 2, 3].map(|seed| content(seed, 64 << 10));
    let [mut sparse, mut other, mut rest] =
        [&first, &second, &third].map(|content| store.open(7, &offer(content)).unwrap());
    // A slice of each block: 8 KiB that take 64 KiB of the disk.
    put(&mut sparse, &offer(&first), &first, (0..128).step_by(8));
    let fits = outcomes(&mut other, &second, (4..128).step_by(8));
    assert_eq!(fits, [[Slice::New; 8], [Slice::NoRoom; 8]].concat());
    let disk: u64 = std::fs::read_dir(&directory.0)
        .unwrap()
        .map(|entry| 512 * std::os::unix::fs::MetadataExt::blocks(&entry.unwrap().metadata().unwrap()))
        .sum();
    assert!(disk <= limit + 2 * (8 << 10), "{disk} bytes with the notes");
    // The rest of a started block takes nothing, and a resumed file frees what it took.
    assert_eq!(outcomes(&mut other, &second, 0..4), [Slice::New; 4]);
    drop(other);
    let mut resumed = store.open(7, &offer(&second)).unwrap();
    assert_eq!(outcomes(&mut rest, &third, 0..1), [Slice::NoRoom]);
    assert_eq!(outcomes(&mut resumed, &second, 5..8), [Slice::New; 3]);
    resumed.discard();
    assert_eq!(outcomes(&mut rest, &third, 0..50), [Slice::New; 50]);
}

#[test]
fn unused_parts_make_room_for_a_slice() {
    let directory = TestDirectory::new("slice");
    let mut store = DirectoryStore::new(directory.0.clone(), 40_000, 45_000).unwrap();
    let [unused, used, late] = [1, 2, 3].map(|seed| content(seed, 30_000));
    let mut assemblies = [&unused, &used, &late].map(|content| store.open(0, &offer(content)).unwrap());
    put(&mut assemblies[0], &offer(&unused), &unused, 0..30);
    put(&mut assemblies[1], &offer(&used), &used, 0..30);
    let [unused_part, mut used_part, mut late_part] = assemblies;
    drop(unused_part);
    assert_eq!(outcomes(&mut late_part, &late, 0..30), [Slice::New; 30]);
    let kept = [&unused, &used, &late]
        .map(|content| directory.names().iter().any(|name| name.starts_with(&hex(&offer(content).hash))));
    assert_eq!(kept, [false, true, true]);
    assert_eq!(outcomes(&mut used_part, &used, 32..40), [Slice::NoRoom; 8], "files in use stay");
}

#[test]
fn where_files_have_no_holes_a_file_has_its_room_with_its_first_slice() {
    let directory = TestDirectory::new("no-holes");
    let mut store = DirectoryStore::new(directory.0.clone(), 10_000, 15_000).unwrap();
    lock(&store.space).has_holes = false;
    let [first, second] = [1, 2].map(|seed| content(seed, 10_000));
    let [mut early, mut late] = [&first, &second].map(|content| store.open(0, &offer(content)).unwrap());
    assert_eq!(outcomes(&mut early, &first, 0..1), [Slice::New]);
    assert_eq!(outcomes(&mut late, &second, 0..1), [Slice::NoRoom]);
    // Another process adds a file, and a scan finds it.
    std::fs::write(directory.0.join("0".repeat(64)), [0; 10_000]).unwrap();
    lock(&store.space).look_after = None;
    assert_eq!(store.open(0, &offer(&[0; 9000])).unwrap_err(), Rejection::NoRoom);
    assert_eq!(outcomes(&mut early, &first, 1..20), [Slice::New; 19]);
}

#[cfg(unix)]
#[test]
fn the_note_of_a_large_file_takes_room() {
    let directory = TestDirectory::new("notes");
    let mut store = DirectoryStore::new(directory.0.clone(), 1 << 30, 1 << 30).unwrap();
    let mut large = offer(&content(1, 512));
    large.size = 1 << 30;
    let mut part = store.open(7, &large).unwrap();
    part.handle(&large, 0, &[0; 512]).unwrap();
    // A bit for each of 2^21 slices.
    assert!((262_144..262_200).contains(&lock(&store.space).bytes), "more than the block of the slice");
    part.discard();
    assert_eq!(lock(&store.space).bytes, 0);
}

#[test]
fn a_file_that_replaces_another_counts_once() {
    let directory = TestDirectory::new("replaced");
    let mut store = DirectoryStore::new(directory.0.clone(), 1000, 2000).unwrap();
    let content = content(1, 1000);
    let mut parts: Vec<_> = (0..2).map(|peer| store.open(peer, &offer(&content)).unwrap()).collect();
    for mut part in parts.drain(..) {
        put(&mut part, &offer(&content), &content, 0..2);
        finish(part).unwrap();
    }
    let space = lock(&store.space);
    assert_eq!((space.files, space.bytes), (1, 1000));
}

#[test]
fn a_directory_of_small_leftovers_is_cleared_in_steps() {
    let directory = TestDirectory::new("steps");
    let hash = "0".repeat(64);
    for number in 0..2000 {
        std::fs::write(directory.0.join(format!("{hash}.{number}.part")), [0; 10]).unwrap();
    }
    let mut store = DirectoryStore::new(directory.0.clone(), 20_000, 20_000).unwrap();
    let large = offer(&content(1, 20_000));
    assert_eq!(store.open(0, &large).unwrap_err(), Rejection::NoRoom);
    assert_eq!(directory.names().len(), 2000 - 1024);
    lock(&store.space).look_after = None;
    assert!(store.open(0, &large).is_ok());
}

#[test]
fn offers_without_slices_take_no_room() {
    let directory = TestDirectory::new("offers");
    let mut store = DirectoryStore::new(directory.0.clone(), 1000, 3000).unwrap();
    let offers: Vec<_> =
        (0..40).map(|seed| store.open(seed.into(), &offer(&content(seed, 1000))).unwrap()).collect();
    assert!(directory.names().is_empty());
    let names = (40..43).map(|seed| receive(&mut store, &content(seed, 1000)));
    assert_eq!(names.count(), 3, "beside {offers:?}");
    assert_eq!(store.open(0, &offer(&content(50, 1000))).unwrap_err(), Rejection::NoRoom);
}

#[cfg(unix)]
#[test]
fn an_unfinished_file_takes_what_arrived_of_it() {
    let directory = TestDirectory::new("holes");
    let mut store = DirectoryStore::new(directory.0.clone(), 1 << 20, 2 << 20).unwrap();
    let mut open = Vec::new();
    for seed in 0..20 {
        let content = content(seed, 1 << 20);
        let mut assembly = store.open(seed.into(), &offer(&content)).unwrap();
        put(&mut assembly, &offer(&content), &content, 0..1);
        open.push(assembly);
    }
    receive(&mut store, &content(30, 1 << 20));
    // Likewise in another process, and for parts that nobody uses.
    open.truncate(10);
    let mut store = DirectoryStore::new(directory.0.clone(), 1 << 20, 2 << 20).unwrap();
    assert!(store.open(40, &offer(&content(40, 700_000))).is_ok());
    assert_eq!(directory.names().len(), 21);
}

#[test]
fn parts_that_nobody_uses_make_room_the_oldest_first() {
    let directory = TestDirectory::new("room");
    let mut store = DirectoryStore::new(directory.0.clone(), 1000, 3000).unwrap();
    let contents = [1, 2, 3, 4].map(|seed| content(seed, 900));
    let mut used = Vec::new();
    for (number, content) in contents[..3].iter().enumerate() {
        let offer = offer(content);
        let mut assembly = store.open(0, &offer).unwrap();
        put(&mut assembly, &offer, content, 0..2);
        let path = part_paths(&directory.0.join(hex(&offer.hash)), 0).next().unwrap();
        if number == 0 {
            used.push(assembly);
        } else {
            drop(assembly);
        }
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1000 - number as u64);
        std::fs::File::options().append(true).open(path).unwrap().set_modified(changed).unwrap();
    }
    let mut new = store.open(0, &offer(&contents[3])).unwrap();
    put(&mut new, &offer(&contents[3]), &contents[3], 0..1);
    let kept =
        |content: &[u8]| directory.names().iter().any(|name| name.starts_with(&hex(&offer(content).hash)));
    assert_eq!([0, 1, 2, 3].map(|number| kept(&contents[number])), [true, true, false, true]);
}

#[test]
fn leftovers_of_one_peer_are_cleared_for_more_than_the_next_chunk() {
    let directory = TestDirectory::new("leftovers");
    let mut store = DirectoryStore::new(directory.0.clone(), 1000, 4000).unwrap();
    for seed in 0..40 {
        let content = content(seed, 80);
        let mut assembly = store.open(1, &offer(&content)).unwrap();
        put(&mut assembly, &offer(&content), &content, [0]);
        drop(assembly);
    }
    let mut open = Vec::new();
    for seed in 40..49 {
        let content = content(seed, 100);
        let mut assembly = store.open(2, &offer(&content)).unwrap();
        put(&mut assembly, &offer(&content), &content, [0]);
        open.push(assembly);
    }
    let names = directory.names().len();
    assert!((20..40).contains(&names), "{names} files with {} new ones", open.len());
    // Opening a full directory keeps partial files for resuming.
    DirectoryStore::new(directory.0.clone(), 1000, 1000).unwrap();
    assert_eq!(directory.names().len(), names);
}

#[test]
fn a_full_directory_is_not_looked_at_for_every_offer() {
    let directory = TestDirectory::new("looks");
    let mut store = DirectoryStore::new(directory.0.clone(), 1000, 1000).unwrap();
    let path = receive(&mut store, &content(1, 1000));
    assert_eq!(store.open(0, &offer(&[0])).unwrap_err(), Rejection::NoRoom);
    std::fs::remove_file(path).unwrap();
    lock(&store.space).look_after = Some(Instant::now() + Duration::from_secs(1000));
    assert_eq!(store.open(0, &offer(&[0])).unwrap_err(), Rejection::NoRoom);
    lock(&store.space).look_after = None;
    assert!(store.open(0, &offer(&[0])).is_ok());
}
