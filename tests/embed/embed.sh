#!/usr/bin/env bash
# A program that links the installed library: examples/embed, built where neither sources nor build are, trains, resumes, plans and
# simulates, and finds the losses and seconds that it should.
#   embed.sh CMAKE BUILD EXAMPLE [CMAKE-ARGUMENT...]
set -euo pipefail
cmake=$1 build=$2 example=$3
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "embed.sh: $*" >&2; exit 1; }

"$cmake" --install "$build" --prefix "$folder/prefix" >/dev/null
cp -r "$example" "$folder/embed"
root=$(dirname "$(dirname "$example")")
if grep -rlF -e "$build" -e "$root/" "$folder/prefix/include" "$folder/prefix/lib/cmake"; then
  fail "these installed files name the build or the sources"
fi

cd "$folder"
clean=(env -i PATH="$PATH" HOME="$folder" LANG=C OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive)
for variable in ASAN_OPTIONS LSAN_OPTIONS UBSAN_OPTIONS UCX_MEM_MMAP_HOOK_MODE; do
  [[ -v $variable ]] && clean+=("$variable=${!variable}")
done
"${clean[@]}" "$cmake" -S embed -B built -DCMAKE_PREFIX_PATH="$folder/prefix" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Werror" "$@" >configured || { cat configured; fail "it is not configured"; }
if grep -F "$root/" built/compile_commands.json; then fail "it is compiled with the sources at hand"; fi
"${clean[@]}" "$cmake" --build built -j 2 >made || { cat made; fail "it is not built"; }

"${clean[@]}" built/train_lenet 100 net | tee trained
[[ -e net_iter_100.safetensors ]] || fail "there is no snapshot"
awk '$1 == "iteration" && !first { first = $4 }
     $1 == "iteration" { loss = $4; lines++ }
     $2 == "accuracy" { accuracy = $3 }
     /resumed/ { resumed = $NF }
     END { exit !(lines == 7 && first > 1.5 && loss < first / 3 && accuracy > 0.8 && resumed == loss) }' trained ||
  fail "the loss does not fall, or resuming changes it"

"${clean[@]}" built/plan_vgg layer-wise-p100 8 | tee planned
"${clean[@]}" prefix/bin/cortado plan --model prefix/share/cortado/models/vgg-16/train_val.prototxt --machine layer-wise-p100 \
  --devices 8 --batch 256 --input-shape 3x224x224 --json plan.json >/dev/null
seconds=$(grep -oE '"cost_seconds": *[0-9.e+-]+' plan.json | grep -oE '[0-9.e+-]+$')
awk -v seconds="$seconds" '
     $1 ~ /^(conv|fc)/ { layers++ }
     /[nchw]=[0-9]/ { cut++ }
     $1 == "planned" { planned = $2; optimal = /optimal/ }
     $1 == "simulated" { simulated[$5] = $2 }
     END { near = planned / (seconds * 1e3)
           exit !(layers >= 16 && cut >= 16 && optimal && near > 0.999 && near < 1.001 &&
                  simulated["plan,"] > 0 && simulated["plan,"] < simulated["data,"]) }' planned ||
  fail "the plan is not that of the command, which costs $seconds seconds, or is simulated slower than data"

# By pkg-config, with the compiler and the flags of before.
cached() { sed -n "s/^$1:[^=]*=//p" built/CMakeCache.txt; }
flags=$(PKG_CONFIG_PATH=$folder/prefix/lib/pkgconfig pkg-config --cflags --libs cortado)
models=$(PKG_CONFIG_PATH=$folder/prefix/lib/pkgconfig pkg-config --variable=datadir cortado)/models
# shellcheck disable=SC2046,SC2086
"${clean[@]}" "$(cached CMAKE_CXX_COMPILER)" -std=c++20 "-DMODELS=\"$models\"" embed/plan_vgg.cpp -o by_pkg_config $flags \
  $(cached CMAKE_EXE_LINKER_FLAGS) || fail "it is not built by pkg-config"
"${clean[@]}" ./by_pkg_config layer-wise-p100 8 | diff planned - || fail "built by pkg-config it plans something else"
