"""Alignments from files: what is read, what is dropped, and what is refused in which words."""

from __future__ import annotations

import gzip
import os
import string
from pathlib import Path

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.data import Alignment, AlignmentWarning, read_alignment, write_fasta
from paramagnet.data.alphabet import as_alphabet, find_alphabet
from paramagnet.data.sequence_preparation import SequencePreparation, read_preparation

SEQUENCES = Path(os.environ.get("PARAMAGNET_DATA", "")) / "sequences"
needs_data = pytest.mark.skipif(
    not os.environ.get("PARAMAGNET_DATA") or not SEQUENCES.is_dir(), reason="PARAMAGNET_DATA has no sequences"
)
PROTEIN = "-ACDEFGHIKLMNPQRSTVWY"


def written(folder, text, name="x.fa"):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_records_become_states(tmp_path):
    path = written(tmp_path, "# a comment\n>first one\nWY-\nK\n\n>second\n W Y A K \n")
    found = read_alignment(path)
    assert found.names == ("first one", "second")
    assert found.alphabet == PROTEIN
    assert found.sequences == ["WY-K", "WYAK"]
    assert found.data.dtype == np.uint8
    assert [[PROTEIN[state] for state in row] for row in found.data] == [list("WY-K"), list("WYAK")]
    assert (found.n_sequences, found.n_sites, found.n_columns, len(found)) == (2, 4, 4, 2)
    assert found.units == pm.categorical(21)
    assert not found.data.flags.writeable
    assert "protein" in found.found[0]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("packed", [False, True])
def test_line_ends_and_gzip(tmp_path, end, packed):
    text = f">a{end}WY{end}-K{end}>b{end}WYAK".encode()
    path = written(tmp_path, gzip.compress(text) if packed else text, "x.fasta.gz" if packed else "x.fasta")
    assert read_alignment(path).sequences == ["WY-K", "WYAK"]


def test_a_file_with_two_gzip_members_and_a_byte_order_mark(tmp_path):
    content = gzip.compress(b"\xef\xbb\xbf>a\nWYK\n") + gzip.compress(b">b\nWYL\n")
    assert read_alignment(written(tmp_path, content, "x.fa.gz")).sequences == ["WYK", "WYL"]


def test_columns_of_insertions_are_dropped(tmp_path):
    path = written(tmp_path, ">a\nW.Y-aK\n>b\nWkYA.K\n>c\nW.YAAK\n")
    found = read_alignment(path)
    assert found.sequences == ["WY-K", "WYAK", "WYAK"]  # the capital A of c stands in a column of insertions
    assert found.columns.tolist() == [0, 2, 3, 5]
    assert found.site_names == ("1", "3", "4", "6")
    assert found.n_columns == 6
    assert "2 of 6 columns" in found.found[0]
    kept = read_alignment(path, insertions="keep")
    assert kept.sequences == ["W-Y-AK", "WKYA-K", "W-YAAK"]


def test_a3m_has_insertions_without_dots(tmp_path):
    found = read_alignment(written(tmp_path, ">a\nWYKL\n>b\nWaaYKL\n>c\nWY-Lc\n", "x.a3m"))
    assert found.sequences == ["WYKL", "WYKL", "WY-L"]
    assert found.n_columns == 4


@pytest.mark.parametrize(
    ("text", "alphabet", "letters"),
    [
        (">a\nACGT\n>b\nTTGA\n", None, "ACGT"),
        (">a\nAC-T\n>b\nTTGA\n", None, "-ACGT"),
        (">a\nACGUACGUAC\n>b\nACGUACGNAC\n", None, "-ACGU"),
        (">a\nACGU\n>b\nUUGA\n", "rna", "-ACGU"),
        (">a\nACGT\n>b\nTTGA\n", "protein", PROTEIN),
        (">a\nABAB\n>b\nBBAA\n", "AB", "AB"),
        (">a\n0110\n>b\n1111\n", "01", "01"),
    ],
)
def test_alphabets(tmp_path, text, alphabet, letters):
    path = written(tmp_path, text)
    if "N" in text:
        with pytest.warns(AlignmentWarning, match=r"1 unknown letter \(N\) counts as a gap, in record"):
            found = read_alignment(path, alphabet=alphabet)
        assert "1 unknown letter as a gap" in found.found
    else:
        found = read_alignment(path, alphabet=alphabet)
    assert found.alphabet == letters
    assert found.units == pm.categorical(len(letters))


def test_unknown_letters_are_gaps_with_a_warning(tmp_path):
    path = written(tmp_path, ">a\nWYKL\n>b b\nW.BX\n>c\nWYKL\n")
    with pytest.warns(
        AlignmentWarning, match=r"2 unknown letters \(BX\) count as gaps, .* record 2 \('b b'\), column 3"
    ):
        found = read_alignment(path)
    assert found.sequences == ["WKL", "W--", "WKL"]
    assert "2 unknown letters" in " ".join(found.found)
    with pytest.raises(ValueError, match=r"got 'B' in record 2 \('b b'\), column 3.*unknown='gap'"):
        read_alignment(path, unknown="error")
    with pytest.raises(ValueError, match=r"'L' in record 1 .*Add '-' to the alphabet"):
        read_alignment(written(tmp_path, ">a\nWYKL\n"), alphabet="WYK")
    with pytest.raises(ValueError, match=r"got others \(KLWY\) for 8 of 8 letters.*right `alphabet`"):
        read_alignment(written(tmp_path, ">a\nWYKL\n>b\nWYKL\n"), alphabet="dna")


def test_what_holds_gaps_only_stays_with_a_warning(tmp_path):
    path = written(tmp_path, ">a\nW-YK-\n>b\nW-YL-\n")
    with pytest.warns(AlignmentWarning, match=r"2 columns hold gaps only \(2, 5\)"):
        found = read_alignment(path)
    assert found.n_sites == 5
    frequencies = pm.data.site_frequencies(found)
    assert np.isfinite(np.log(frequencies)).all()
    machine = pm.initialize(5, 2, visible=found.units, visible_bias="data", data=found.data, rng=0)
    assert np.isfinite(machine.visible_bias).all()
    with pytest.warns(AlignmentWarning, match="1 sequence holds gaps only"):
        read_alignment(written(tmp_path, ">a\nWYK\n>b\n---\n"))


def test_names_that_occur_twice_stay(tmp_path):
    found = read_alignment(written(tmp_path, ">a\nWYK\n>a\nWYL\n>b\nWYL\n"))
    assert found.names == ("a", "a", "b")
    assert "1 names that occur before" in found.found


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "at least one sequence"),
        ("# nothing\n\n", "at least one sequence"),
        ("WYK\n>a\nWYK\n", "before the first one in line 1: 'WYK'"),
        (">a\n>b\nWYK\n", r"got none in record 1 \('a'\)"),
        (">a\nWYK\n>b\n", r"got none in record 2 \('b'\)"),
        (">a\nWYK\n>b\nWYKL\n>c\nWYK\n", r"got 4 letters in record 2 \('b'\), where most have 3"),
        (">a\nWYKa\n>b\nWYKLbb\n>c\nWYK\n", r"got 4 letters without insertions in record 2 \('b'\)"),
        (">a\nwyk\n>b\nwyl\n", "small letters in all 3.*insertions='keep'"),
        (">a\nWY1\n>b\nWYK\n", r"got '1' in record 1 \('a'\), column 3.*no letter"),
        (">a\nWYé\n>b\nWYK\n", r"record 1 \('a'\), column 3.*no letter"),
        (b">a\nWY\0K\n", "null bytes"),
        (b"\x1f\x8bnonsense", "gzip"),
        (gzip.compress(b">a\nWYK\n" * 10)[:-6], "gzip"),
    ],
)
def test_what_is_refused(tmp_path, content, words):
    path = written(tmp_path, content)
    with pytest.raises(ValueError, match=words):
        read_alignment(path)
    with pytest.raises(ValueError, match=words):
        pm.read_data(path)


def test_a_packed_file_is_not_unpacked_beyond_the_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("PARAMAGNET_MAX_BYTES", "100000")
    path = written(tmp_path, gzip.compress(b">a\n" + b"W" * 10_000_000), "x.fa.gz")
    with pytest.raises(ValueError, match="must not unpack to more than 100,000 bytes"):
        read_alignment(path)


def test_other_arguments(tmp_path):
    path = written(tmp_path, ">a\nWYK\n")
    with pytest.raises(ValueError, match="`unknown` must be 'gap' or 'error'"):
        read_alignment(path, unknown="X")
    with pytest.raises(ValueError, match="`insertions` must be 'drop' or 'keep'"):
        read_alignment(path, insertions="no")
    with pytest.raises(ValueError, match=r"`path` must end in \.fa"):
        read_alignment(written(tmp_path, ">a\nWYK\n", "x.pdb"))
    for alphabet in ("A", "", "AA", "ab", "A C", "A.C", "A\n", 3, "Aé", ">A"):
        with pytest.raises(ValueError, match="`alphabet` must be 'protein', 'rna', 'dna'"):
            read_alignment(path, alphabet=alphabet)
    assert as_alphabet("dna") == "-ACGT"
    assert find_alphabet({}) == (PROTEIN, "protein")


def test_one_sequence_per_line_with_counts(tmp_path):
    found = read_alignment(written(tmp_path, "# x\nsequence\tcount\nACG\t3\nAUG\t0\nGGG\t1\n", "x.txt"))
    assert found.alphabet == "ACGU"
    assert found.counts.tolist() == [3.0, 0.0, 1.0]
    assert found.names == ("line 3", "line 4", "line 5")
    for titles in ("SITE COUNT", "seq count"):  # in capitals, and as long as the sequences
        assert len(read_alignment(written(tmp_path, f"{titles}\nACG 3\nAUG 2\n", "x.txt"))) == 2
    assert read_alignment(written(tmp_path, "ACG\nAUG\n", "y.txt")).counts is None
    assert found.select([2, 0]).counts.tolist() == [1.0, 3.0]
    assert read_alignment(written(tmp_path, ">a\nACG\n", "z.txt")).names == ("a",)
    for text, words in (
        ("ACG 1\nAUG\n", "got 1 words in line 2"),
        ("ACG 1\nAUG -1\n", "got '-1' in line 2"),
        ("ACG 1\nAUG x\n", "got 'x' in line 2"),
        ("ACG 1\nAUG inf\n", "got 'inf' in line 2"),
        ("ACG 0\nAUG 0\n", "zeros only"),
        ("ACG five\nAUG 3\n", "got 'five' in line 1"),  # a sequence, and no titles
        ("a b c\n1 2 3\n", "got 3 words in line 1"),
        ("1.5\n2.5\n", "insertions|no letter"),
    ):
        with pytest.raises(ValueError, match=words):
            read_alignment(written(tmp_path, text, "x.txt"))


def test_samples_are_written_and_read_again(tmp_path):
    rng = np.random.default_rng(0)
    states = rng.integers(21, size=(7, 130)).astype(float)
    states[:, 0] = 5.0
    write_fasta(tmp_path / "new.fa", states, "protein")
    found = read_alignment(tmp_path / "new.fa")
    assert np.array_equal(found.data, states)
    assert found.names[:2] == ("sample_1", "sample_2")
    assert max(map(len, (tmp_path / "new.fa").read_text().splitlines())) == 60
    found.select(slice(0, 2)).save(tmp_path / "two.fa")
    assert read_alignment(tmp_path / "two.fa", alphabet="protein").names == ("sample_1", "sample_2")
    with pytest.raises(ValueError, match=r"`states` must hold integers from 0 to 3.*found 5"):
        write_fasta(tmp_path / "new.fa", states, "ACGU")
    with pytest.raises(ValueError, match="`names` must be a list of 7 texts"):
        write_fasta(tmp_path / "new.fa", states, "protein", names=["a"])
    with pytest.raises(ValueError, match="`rows` must be places"):
        found.select([9])


def test_data_sets_and_tables_of_sequences(tmp_path):
    path = written(tmp_path, "".join(f">s{i}\nWY{'KL'[i % 2]}\n" for i in range(10)))
    dataset = pm.load_dataset(path, units="categorical", n_points=6, rng=1)
    assert dataset.units == pm.categorical(21)
    assert dataset.data.dtype == np.float64
    assert (dataset.data.shape, dataset.held_out.shape) == ((6, 3), (4, 3))
    assert isinstance(dataset.alignment, Alignment)
    assert dataset.alignment.names == tuple(f"s{i}" for i in dataset.indices)
    assert np.array_equal(dataset.alignment.data, dataset.data)
    assert "6 points of 3 categorical(21) units" in repr(dataset)
    assert pm.load_dataset(path, units="categorical(21)").data.shape == (10, 3)
    assert np.array_equal(pm.read_data(path), pm.load_dataset(path, units="categorical").data)
    assert pm.data.read_table(path).feature_names == ("1", "2", "3")
    with pytest.raises(ValueError, match="`units` must be 'categorical' for a file of sequences, got spin"):
        pm.load_dataset(path)
    with pytest.raises(ValueError, match=r"or categorical\(21\), .* got categorical\(4\)"):
        pm.load_dataset(path, units="categorical(4)")
    table = written(tmp_path, "a,b\n0,1\n", "x.csv")
    with pytest.raises(ValueError, match="'categorical', which is for sequences"):
        pm.load_dataset(table, units="categorical")


def test_the_file_of_a_machine_keeps_the_alphabet(tmp_path):
    path = written(tmp_path, ">a\nWY.K\n>b\nWYaL\n>c\nWY.-\n")
    alignment = read_alignment(path)
    preparation = SequencePreparation.of(alignment)
    machine = pm.initialize(3, 2, visible="categorical(21)", scheme="xavier", rng=0)
    machine.save(tmp_path / "m.safetensors", preparation=preparation)
    loaded = SequencePreparation.load(tmp_path / "m.safetensors")
    assert (loaded.alphabet, loaded.columns, loaded.n_columns) == (PROTEIN, (0, 1, 3), 4)
    assert loaded.site_names == ("1", "2", "4")
    assert np.allclose(loaded.means, pm.data.site_frequencies(alignment).ravel(), rtol=1e-7)
    assert loaded.invert(alignment.data) == ["WYK", "WYL", "WY-"]
    # A file in which no sequence has the insertion: the columns of the training are taken.
    other = written(tmp_path, ">d\nWY.K\n>e\nW-TK\n", "other.fa")
    assert loaded.read(other).sequences == ["WYK", "W-K"]
    # Three columns are the three sites; the letters are those of the training, though they look like DNA.
    short = written(tmp_path, ">d\nACG\n", "short.fa")
    assert loaded.read(short).alphabet == PROTEIN
    assert loaded.apply(short).dtype == np.float64
    with pytest.raises(ValueError, match=r"must have 3 sites, or 4 columns.*got 5 sites of 5 columns"):
        loaded.read(written(tmp_path, ">d\nACGAC\n", "long.fa"))
    assert isinstance(read_preparation(loaded.to_json()), SequencePreparation)
    for text in ("{}", "[]", "x", loaded.to_json().replace('"version":1', '"version":2'), 3):
        with pytest.raises(ValueError, match="`text` is no preparation of sequences"):
            SequencePreparation.from_json(text)
    machine.save(tmp_path / "plain.safetensors")
    with pytest.raises(ValueError, match="saved with its alphabet"):
        SequencePreparation.load(tmp_path / "plain.safetensors")
    with pytest.raises(ValueError, match="must be what `read_alignment` returns"):
        SequencePreparation.of(alignment.data)


@needs_data
def test_the_ww_domain():
    with pytest.warns(AlignmentWarning, match=r"1 unknown letter \(X\)"):
        found = read_alignment(SEQUENCES / "ww_sequences.fa")
    assert (found.n_sequences, found.n_sites, found.n_columns) == (4025, 31, 44)
    assert found.alphabet == PROTEIN
    assert found.sequences[0] == "LPPQWTEAVDVDTGKFYFVHVETKETRWERP"


@needs_data
def test_splice_sites_and_binding_sites():
    found = read_alignment(SEQUENCES / "ss_sequences.txt")
    assert (found.n_sequences, found.n_sites, found.alphabet) == (10227, 9, "ACGU")
    assert found.counts.max() == 3729
    assert found.sequences[0] == "CAGGUGAGU"
    sites = read_alignment(SEQUENCES / "crp_sites.fa")
    assert (sites.n_sequences, sites.n_sites, sites.alphabet) == (358, 26, "ACGT")


def test_every_small_letter_marks_an_insertion(tmp_path):
    path = tmp_path / "insertions.fa"
    for letter in string.ascii_lowercase:
        path.write_text(f">a\nA{letter}C\n>b\nA-D\n")
        family = pm.data.read_alignment(path, alphabet="protein")
        assert list(family.sequences) == ["AC", "AD"], letter
