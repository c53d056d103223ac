# tensors of a safetensors file: chosen, listed, read, written, refused
. "$TESTS/lib.sh"
"$PYTHON" - <<'END'
import json, struct
def save(name, tensors, extra={}):
    header, data = dict(extra), b""
    for key, (dtype, shape, values) in tensors.items():
        header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    with open(name, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
floats = struct.pack("<12f", *range(12))
save("one.safetensors", {"layer.0/weight": ("F32", [3, 4], floats)}, {"__metadata__": {"format": "pt"}})
save("model.safetensors", {
    "embed": ("F32", [3, 4], floats), "head": ("BF16", [2, 3], struct.pack("<6H", *[0x3f80 + 16 * i for i in range(6)])),
    "bias": ("F64", [4], struct.pack("<4d", 1, 2, 3, 4)), "conv": ("I16", [2, 3, 2], struct.pack("<12h", *range(12))),
    "mask": ("BOOL", [2, 2], b"\1\0\0\1"), "small": ("F8_E4M3", [2, 2], b"abcd"), "scale": ("F32", [], b"\0\0\0@")})
save("cube.safetensors", {"x": ("F32", [3, 2, 2], floats)})
text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 2), }".ljust(117) + "\n"
with open("cube.npy", "wb") as file:
    file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + floats)
save("hostile.safetensors", {"a\u001b[31m": ("F32", [3, 4], floats), "b": ("F32", [9, 9], b"")})
END
try gnomon info one.safetensors | sed 's/^file size.*/file size/'
try gnomon info model.safetensors
gnomon info model.safetensors --json | "$PYTHON" -c '
import json, sys
for member in json.load(sys.stdin)["members"]: print(sorted(member.items()))'
try gnomon convert one.safetensors - --output-format csv --quiet
for tensor in embed head bias conv mask; do try gnomon convert model.safetensors:$tensor - --output-format csv --quiet; done
for tensor in small scale none; do try gnomon convert model.safetensors:$tensor x.npy; done
try gnomon convert model.safetensors x.npy
gnomon convert one.safetensors x.npy --quiet
# there and back, by a pipe too
gnomon convert x.npy back.safetensors:w --quiet && try gnomon info back.safetensors:w
gnomon convert - back.npy --quiet < back.safetensors && cmp x.npy back.npy
gnomon convert x.npy - --output-format safetensors --output-dtype bfloat16 --quiet > half.safetensors
try gnomon convert half.safetensors:data - --output-format csv --quiet
gzip -c one.safetensors > one.safetensors.gz
gnomon convert one.safetensors.gz gzipped.npy --quiet && cmp x.npy gzipped.npy
# a sketch from it is that of the same points
gnomon project one.safetensors:layer.0/weight -k 2 -o sketch.safetensors --quiet
gnomon project x.npy -k 2 -o sketch.npy --quiet
gnomon convert sketch.safetensors same.npy --quiet && cmp sketch.npy same.npy
try gnomon info hostile.safetensors
try gnomon convert x.npy x.safetensors:__metadata__
head -c 60 one.safetensors > cut.safetensors
try gnomon info cut.safetensors
gnomon info --json | grep -q '"svd": true' || exit 0
gnomon hosvd cube.safetensors --ranks 3,2,1 -o a.npz --quiet && gnomon hosvd cube.npy --ranks 3,2,1 -o b.npz --quiet
cmp a.npz b.npz && echo "the same core and factors"
