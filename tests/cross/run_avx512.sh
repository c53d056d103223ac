#!/usr/bin/env bash
# Runs unit tests on an emulated processor with AVX-512 (Bochs), for machines that have none: with our AVX-512 kernels
# and with OpenBLAS's SkylakeX kernels, in a Linux kernel of Debian's. About a hundred times slower than a processor,
# so name the tests. Ends with 'N passed, N failed'.
# usage: run_avx512.sh BUILD_FOLDER TEST...      as in run_avx512.sh build test_isa test_lstsq
set -euo pipefail
build=$(cd "${1:?usage: run_avx512.sh BUILD_FOLDER TEST...}" && pwd)
shift
[ $# -gt 0 ] || {
    echo "run_avx512.sh: name at least one test" >&2
    exit 2
}
work=$build/avx512
rm -rf "$work/root" "$work/disk"
mkdir -p "$work/root/"{bin,proc,sys,dev,tmp,tests} "$work/disk/isolinux"

# The kernel comes out of its package; nothing is installed.
kernel=$(find "$work" -maxdepth 1 -name 'vmlinuz-*' | head -n 1)
if [ -z "$kernel" ]; then
    package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
    (cd "$work" && apt-get -q download "$package" >/dev/null 2>&1 && dpkg-deb -x linux-image-*.deb package)
    mv "$work"/package/boot/vmlinuz-* "$work"
    rm -rf "$work"/package "$work"/linux-image-*.deb
    kernel=$(find "$work" -maxdepth 1 -name 'vmlinuz-*' | head -n 1)
fi

# The libraries that a file loads, each where it lies here.
put_libraries() {
    local file
    for file in $(ldd "$1" | grep -o '/[^ ]*'); do
        mkdir -p "$work/root$(dirname "$file")"
        [ -e "$work/root$file" ] || cp -L "$file" "$work/root$file"
    done
}
cp /bin/busybox "$work/root/bin"
for name in sh mount poweroff sleep grep echo cat timeout; do
    ln -s busybox "$work/root/bin/$name"
done
for library in /usr/lib*/*/libopenblas.so.0; do
    if [ -e "$library" ]; then
        mkdir -p "$work/root$(dirname "$library")"
        cp -L "$library" "$work/root$library"
        put_libraries "$library"
    fi
done
for name; do
    cp "$build/tests/$name" "$work/root/tests"
    put_libraries "$build/tests/$name"
done
cat >"$work/root/init" <<EOF
#!/bin/sh
export PATH=/bin OPENBLAS_VERBOSE=2
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
exec >/dev/ttyS0 2>&1
grep -qw avx512vl /proc/cpuinfo || echo "no AVX-512 here"
for name in $*; do
    echo "=== \$name"
    timeout 3000 /tests/\$name >/tmp/said 2>&1
    code=\$?
    [ \$code = 0 ] || cat /tmp/said
    grep -m 1 '^Core: ' /tmp/said
    echo "=== \$name: exit code \$code"
done
sleep 4 # the serial port's last bytes
poweroff -f
EOF
chmod +x "$work/root/init"
(cd "$work/root" && find . | cpio -o -H newc --quiet | gzip -1 >"$work/disk/init.img")
cp "$kernel" "$work/disk/vmlinuz"
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$work/disk/isolinux"
# Bochs 2.7 tells a size of the compacted register state that Linux does not believe, and would then go without AVX.
cat >"$work/disk/isolinux/isolinux.cfg" <<EOF
default test
prompt 0
timeout 1
label test
 kernel /vmlinuz
 append initrd=/init.img console=ttyS0 quiet mitigations=off tsc=reliable random.trust_cpu=on clearcpuid=xsaves,xsavec
EOF
xorriso -as mkisofs -quiet -o "$work/disk.iso" -b isolinux/isolinux.bin -c isolinux/boot.cat -no-emul-boot \
    -boot-load-size 4 -boot-info-table "$work/disk" 2>/dev/null
cat >"$work/bochsrc" <<EOF
cpu: model=corei7_skylake_x, count=1, ips=50000000, reset_on_triple_fault=0
megs: 2048
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path=$work/disk.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$work/said
log: $work/log
clock: sync=none
display_library: term
panic: action=fatal
error: action=report
info: action=ignore
EOF
echo c >"$work/continue" # Debian's Bochs starts in its debugger
rm -f "$work/said"
TERM=xterm script -qc "bochs -q -f '$work/bochsrc' -rc '$work/continue'" /dev/null >/dev/null 2>&1 || true

cat "$work/said"
passed=$(grep -c '^=== .*: exit code 0' "$work/said" || true)
if grep -q 'no AVX-512 here' "$work/said"; then passed=0; fi
echo "$passed passed, $(($# - passed)) failed"
[ "$passed" -eq $# ]
