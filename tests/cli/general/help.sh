# every help is there, on standard output, and names its own verb
gnomon --help | sed -n 1p
gnomon help | sed -n 1p
for verb in project dim operator distortion hosvd convert info; do
    gnomon $verb --help | sed -n 1p
    cmp <(gnomon $verb --help) <(gnomon help $verb)
    cmp <(gnomon $verb --help) <(gnomon $verb -h)
done
