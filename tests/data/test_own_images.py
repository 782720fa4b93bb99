"""Facts about clients from a folder of images."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from fedaccord import FedAvg, Federation, simulate
from fedaccord.data import iid_partition, load_images
from fedaccord.errors import DataFileError
from fedaccord.models import cross_entropy, lenet

Image = pytest.importorskip("PIL.Image")


def write(path: Path, pixels: object, mode: str | None = None, **options: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    array = np.asarray(pixels, dtype=np.uint16 if mode == "I;16" else np.uint8)
    Image.fromarray(array).save(path, **options)


def grey(value: int, side: int = 28) -> np.ndarray:
    return np.full((side, side), value)


def test_folders_are_classes_in_the_order_in_which_people_count(tmp_path):
    for name in ("c10/a", "c2/b", "c2/a"):
        write(tmp_path / f"{name}.png", grey(0))
    data = load_images(tmp_path)
    assert data.class_names == (("c2", "c10"),)
    assert data.samples.targets.tolist() == [0, 0, 1]
    assert data.samples.inputs.shape == (3, 1, 28, 28)
    assert data.client_names == (tmp_path.name,)


def test_folders_of_folders_are_clients_with_the_classes_of_all(tmp_path):
    for name in ("p2/cat/1", "p10/dog/1", "p2/dog/10", "p2/dog/9"):
        write(tmp_path / f"{name}.png", grey(int(name.rsplit("/")[-1])))
    data = load_images(tmp_path)
    assert data.client_names == ("p2", "p10")
    assert data.class_names == (("cat", "dog"),)
    assert [client.targets.tolist() for client in data.clients] == [[0, 1, 1], [1]]
    # images in natural order too: 9 before 10
    assert_close(data.clients[0].inputs[:, 0, 0, 0] * 255, torch.tensor([1.0, 9.0, 10.0]))


def test_pixels_lie_in_0_1_and_are_normalised(tmp_path):
    write(tmp_path / "a/1.png", grey(51))
    data = load_images(tmp_path, mean=0.1, std=0.5)
    assert data.samples.inputs.dtype == torch.float32
    assert_close(data.samples.inputs, torch.full((1, 1, 28, 28), (51 / 255 - 0.1) / 0.5))


def test_colours_are_three_channels(tmp_path):
    write(tmp_path / "a/1.png", np.full((4, 4, 3), [255, 0, 51]))
    data = load_images(tmp_path, size=(4, 4), mode="RGB", mean=[0.5, 0, 0], std=[0.5, 1, 2])
    assert_close(data.samples.inputs[0, :, 0, 0], torch.tensor([1.0, 0.0, 0.1]))


def test_size_is_height_and_width(tmp_path):
    left_bright = np.repeat([[255, 255, 0, 0]], 2, axis=0)
    write(tmp_path / "a/1.png", left_bright)
    image = load_images(tmp_path, size=(6, 8)).samples.inputs[0, 0]
    assert image.shape == (6, 8)
    assert (image[:, 0] == 1).all()
    assert (image[:, -1] == 0).all()


def test_shrinking_averages(tmp_path):
    stripes = np.tile([0, 255], (32, 16))
    write(tmp_path / "a/1.png", stripes)
    image = load_images(tmp_path, size=(4, 4)).samples.inputs
    assert_close(image, torch.full((1, 1, 4, 4), 0.5), atol=0.07, rtol=0)


def test_the_cameras_note_of_which_way_is_up_is_followed(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 3  # orientation: upside down
    write(tmp_path / "a/1.png", [[255, 0], [0, 0]], exif=exif)
    image = load_images(tmp_path, size=(2, 2)).samples.inputs[0, 0]
    assert image.tolist() == [[0, 0], [0, 1]]


def test_transparent_parts_lie_on_white(tmp_path):
    write(tmp_path / "a/1.png", np.array([[[0, 0, 0, 0], [0, 0, 0, 255]]]))
    assert load_images(tmp_path, size=(1, 2)).samples.inputs.tolist() == [[[[1, 0]]]]


def test_grey_of_sixteen_bits_keeps_its_range(tmp_path):
    write(tmp_path / "a/1.png", [[0, 13107, 65535]], mode="I;16")  # 13107 = 65535 / 5
    image = load_images(tmp_path, size=(1, 3)).samples.inputs
    assert_close(image.flatten(), torch.tensor([0.0, 0.2, 1.0]))


def test_a_palette_is_looked_up(tmp_path):
    (tmp_path / "a").mkdir()
    colours = Image.fromarray(np.full((2, 2, 3), [0, 255, 0], dtype=np.uint8))
    colours.quantize(4).save(tmp_path / "a/1.gif")
    image = load_images(tmp_path, size=(2, 2), mode="RGB").samples.inputs
    assert image[0, :, 0, 0].tolist() == [0, 1, 0]


def test_other_and_hidden_files_are_passed_over(tmp_path):
    write(tmp_path / "a/1.png", grey(0))
    write(tmp_path / ".cache/1.png", grey(0))
    (tmp_path / "a/notes.txt").write_text("hello")
    (tmp_path / "a/.DS_Store").write_text("hello")
    assert len(load_images(tmp_path).samples) == 1


@pytest.mark.parametrize("keep", [0, 10, 60, 400])
def test_a_damaged_image_is_named_or_skipped_and_listed(tmp_path, keep):
    write(tmp_path / "a/1.png", np.random.default_rng(0).integers(0, 255, (28, 28)))
    write(tmp_path / "b/2.png", grey(0))
    whole = (tmp_path / "a/1.png").read_bytes()
    (tmp_path / "a/1.png").write_bytes(whole[:keep])
    with pytest.raises(DataFileError, match=r"a/1\.png cannot be used"):
        load_images(tmp_path)
    data = load_images(tmp_path, on_error="skip")
    assert data.samples.targets.tolist() == [1]  # the class keeps its number
    assert len(data.notes["skipped"]) == 1
    assert "a/1.png" in data.notes["skipped"][0]


def bomb(width: int, height: int) -> bytes:
    """A few bytes that say they are a large image (PNG specification, section 11.2)."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


@pytest.mark.parametrize("side", [8_000, 10_000, 100_000])
def test_an_image_that_says_it_is_huge_is_refused_before_it_is_decoded(tmp_path, side):
    write(tmp_path / "a/1.png", grey(0))
    (tmp_path / "a/2.png").write_bytes(bomb(side, side))
    with pytest.raises(DataFileError, match=r"a/2\.png cannot be used: .*at most 50000000 pixels"):
        load_images(tmp_path)


def test_how_many_pixels_an_image_may_have_can_be_said(tmp_path):
    write(tmp_path / "a/1.png", grey(0))
    with pytest.raises(DataFileError, match="at most 783 pixels"):
        load_images(tmp_path, max_pixels=783)
    assert len(load_images(tmp_path, max_pixels=784).samples) == 1


def test_images_at_two_depths_are_refused_with_an_example_of_each(tmp_path):
    write(tmp_path / "a/1.png", grey(0))
    write(tmp_path / "p/a/1.png", grey(0))
    with pytest.raises(DataFileError, match=r"Got `p/a/1.png` and `a/1.png`|`a/1.png` and `p/a"):
        load_images(tmp_path)


def test_a_folder_without_images_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(DataFileError, match="must hold images in folders"):
        load_images(tmp_path)


def test_a_folder_of_nothing_but_damaged_images_is_refused(tmp_path):
    write(tmp_path / "a/1.png", grey(0))
    (tmp_path / "a/1.png").write_bytes(b"")
    with pytest.raises(DataFileError, match=r"No image in .* can be read. The first: a/1\.png"):
        load_images(tmp_path, on_error="skip")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": (28, 0)}, "height and width"),
        ({"size": (28,)}, "height and width"),
        ({"mode": "CMYK"}, "'L' for grey"),
        ({"on_error": "ignore"}, "'raise' or 'skip'"),
        ({"std": 0.0}, "must be positive"),
        ({"mean": [0.5, 0.5]}, "one a channel, 1"),
        ({"test_fraction": -0.1}, r"in \[0, 1\)"),
    ],
)
def test_options_out_of_range_are_refused(tmp_path, options, message):
    write(tmp_path / "a/1.png", grey(0))
    with pytest.raises(ValueError, match=message):
        load_images(tmp_path, **options)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"])
@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow's own, about damaged TIFF tags
def test_bytes_changed_at_random_give_an_image_or_our_error(tmp_path, kind):
    rng = np.random.default_rng(0)
    content = io.BytesIO()
    Image.fromarray(rng.integers(0, 255, (9, 7, 3), dtype=np.uint8)).save(content, kind)
    path = tmp_path / "a" / f"1.{kind.lower()}"
    path.parent.mkdir()
    refused = 0
    for _ in range(40):
        damaged = bytearray(content.getvalue())
        for place in rng.integers(0, len(damaged), 4):
            damaged[place] = rng.integers(0, 256)
        path.write_bytes(damaged)
        try:
            assert load_images(tmp_path, size=(4, 4)).samples.inputs.isfinite().all()
        except DataFileError:
            refused += 1
    assert refused > 0


def test_two_rounds_train(tmp_path):
    for i in range(8):
        write(tmp_path / f"{'ab'[i % 2]}/{i}.png", grey(30 * i))
    images = load_images(tmp_path)
    data = images.divide(iid_partition(len(images.samples), num_clients=2), test_fraction=0.25)
    assert (data.parts.sizes, data.test_parts.sizes) == ((3, 3), (1, 1))
    federation = Federation(lambda: lenet(num_classes=2), cross_entropy, data.clients)
    results = list(simulate(FedAvg(), federation, rounds=2))
    assert all(result.step_norm > 0 for result in results)
