package conformance

import ("testing";"fmt";"github.com/mlxc/mlxc/msl")

func TestZZ(t *testing.T) {
	fam := map[string]int{}; tm := map[string]int{}; src := map[string]int{}
	for _, f := range msl.Functions() {
		d := msl.Declarations(f)[0]
		fam[d.Family()]++; tm[template(d)]++; src[fmt.Sprint(d.File, d.Line)]++
	}
	fmt.Println(len(msl.Functions()), len(fam), len(tm), len(src))
	for k, n := range tm { fmt.Println(n, k) }
}
