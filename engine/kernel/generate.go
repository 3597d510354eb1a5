package kernel

//go:generate sh -c "cd _asm && go run ."
