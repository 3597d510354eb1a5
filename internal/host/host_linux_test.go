package host

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// tree writes files below a new folder and returns it.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestMemoryUnderControlGroups(t *testing.T) {
	const meminfo = "MemTotal:       16000000 kB\nMemFree:  1 kB\nMemAvailable:   12000000 kB\n"
	const kib = 1 << 10
	for _, c := range []struct {
		name  string
		files map[string]string
		want  Memory
	}{
		{"none", map[string]string{"proc/meminfo": meminfo},
			Memory{16000000 * kib, 12000000 * kib, 0, HasTotal | HasAvailable}},
		{"no limit set", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/user/a\n",
			"sys/fs/cgroup/user/a/memory.max": "max\n", "sys/fs/cgroup/user/a/memory.current": "5\n"},
			Memory{16000000 * kib, 12000000 * kib, 0, HasTotal | HasAvailable}},
		{"version 2, the parent limits", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/user/a\n",
			"sys/fs/cgroup/user/memory.max": "1073741824\n", "sys/fs/cgroup/user/memory.current": "900000000\n",
			"sys/fs/cgroup/user/memory.stat":  "anon 100\ninactive_file 300000000\nactive_file 5\n",
			"sys/fs/cgroup/user/a/memory.max": "2147483648\n", "sys/fs/cgroup/user/a/memory.current": "0\n"},
			Memory{16000000 * kib, 1073741824 - 900000000 + 300000005, 1073741824, HasTotal | HasAvailable | HasLimit}},
		{"version 2 in a container whose path is not visible", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/docker/0123\n",
			"sys/fs/cgroup/memory.max": "500000000\n", "sys/fs/cgroup/memory.current": "600000000\n"},
			Memory{16000000 * kib, 0, 500000000, HasTotal | HasAvailable | HasLimit}},
		{"version 1", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "5:cpu,cpuacct:/\n4:memory:/a\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "1\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "400000000\n", "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "100000000\n",
			"sys/fs/cgroup/memory/a/memory.stat": "inactive_file 7\ntotal_inactive_file 50\ntotal_active_file 30\n"},
			Memory{16000000 * kib, 300000080, 400000000, HasTotal | HasAvailable | HasLimit}},
		{"nothing readable", nil, Memory{}},
	} {
		if got := readMemoryBelow(tree(t, c.files)); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestPhysicalCoresCountSiblingsOnce(t *testing.T) {
	topology := func(cpu, siblings string) (string, string) {
		return "sys/devices/system/cpu/cpu" + cpu + "/topology/thread_siblings_list", siblings + "\n"
	}
	files := map[string]string{"proc/self/cgroup": "0::/\n"}
	for cpu, siblings := range map[string]string{"0": "0,4", "1": "1,5", "2": "2,6", "3": "3,7", "4": "0,4", "5": "1,5", "6": "2,6", "7": "3,7"} {
		name, text := topology(cpu, siblings)
		files[name] = text
	}
	below := func(n int) func(int) bool { return func(cpu int) bool { return cpu < n } }
	check := func(what string, allowed func(int) bool, want int, wantOK bool) {
		t.Helper()
		if got, ok := physicalCoresBelow(tree(t, files), allowed, 64); got != want || ok != wantOK {
			t.Errorf("%s: %d %v, want %d %v", what, got, ok, want, wantOK)
		}
	}
	check("all", below(8), 4, true)
	check("bound to two cores", below(2), 2, true)
	check("a processor without topology", below(9), 0, false)
	files["sys/fs/cgroup/cpu.max"] = "max 100000\n"
	check("no quota", below(8), 4, true)
	files["sys/fs/cgroup/cpu.max"] = "250000 100000\n"
	check("a quota of 2.5 processors", below(8), 2, true)
	files["sys/fs/cgroup/cpu.max"] = "50000 100000\n"
	check("a quota of half a processor", below(8), 1, true)
	delete(files, "sys/fs/cgroup/cpu.max")
	files["proc/self/cgroup"] = "1:cpu:/\n"
	files["sys/fs/cgroup/cpu/cpu.cfs_quota_us"] = "-1\n"
	files["sys/fs/cgroup/cpu/cpu.cfs_period_us"] = "100000\n"
	check("version 1 without quota", below(8), 4, true)
	files["sys/fs/cgroup/cpu/cpu.cfs_quota_us"] = "300000\n"
	check("version 1 with quota", below(8), 3, true)
}

func TestThermalTakesTheHottestPlausibleSensor(t *testing.T) {
	var s thermalSource
	s.openBelow(tree(t, map[string]string{
		"sys/class/thermal/thermal_zone0/type": "acpitz\n", "sys/class/thermal/thermal_zone0/temp": "41000\n",
		"sys/class/thermal/thermal_zone1/type": "x86_pkg_temp\n", "sys/class/thermal/thermal_zone1/temp": "63500\n",
		"sys/class/thermal/thermal_zone2/type": "off\n", "sys/class/thermal/thermal_zone2/temp": "0\n",
		"sys/class/thermal/thermal_zone3/type": "broken\n", "sys/class/thermal/thermal_zone3/temp": "4000000\n",
		"sys/class/hwmon/hwmon0/name": "nvme\n", "sys/class/hwmon/hwmon0/temp1_input": "80000\n",
		"sys/class/hwmon/hwmon1/name": "k10temp\n", "sys/class/hwmon/hwmon1/temp1_input": "64250\n",
	}))
	if c, name, ok := s.read(); !ok || c != 64.25 || name != "k10temp" {
		t.Errorf("%v %q %v", c, name, ok)
	}
	var none thermalSource
	none.openBelow(t.TempDir())
	if _, _, ok := none.read(); ok {
		t.Error("a temperature from no sensor")
	}
}

func TestDriveCountersAndMountTable(t *testing.T) {
	read, written, ok := driveCounters([]byte("   38141     8991  1837506     7293     2648    16046  2239128     3311        0     8220    10885\n"))
	if !ok || read != 1837506*512 || written != 2239128*512 {
		t.Errorf("%d %d %v", read, written, ok)
	}
	if _, _, ok := driveCounters([]byte("1 2 3")); ok {
		t.Error("a cut line was accepted")
	}
	const mounts = "22 27 0:21 / /proc rw,relatime - proc proc rw\n" +
		"40 1 0:35 /@home /home rw,relatime shared:1 - btrfs /dev/nvme0n1p3 rw,ssd\n"
	if source, kind := mountOf(mounts, 0, 35); source != "/dev/nvme0n1p3" || kind != "btrfs" {
		t.Errorf("%q %q", source, kind)
	}
	if source, _ := mountOf(mounts, 0, 99); source != "" {
		t.Errorf("%q", source)
	}
}

func TestWholeDrives(t *testing.T) {
	root := tree(t, map[string]string{
		"sda/sda1/partition": "1\n", "sda/stat": "", "nvme0n1/nvme0n1p3/partition": "3\n", "dm-0/slaves/.keep": "",
	})
	for name, target := range map[string]string{"sda1": "sda/sda1", "nvme0n1p3": "nvme0n1/nvme0n1p3"} {
		if err := os.Symlink(filepath.Join(root, target), filepath.Join(root, "dm-0/slaves", name)); err != nil {
			t.Fatal(err)
		}
	}
	os.Remove(filepath.Join(root, "dm-0/slaves/.keep"))
	got := wholeDrives(filepath.Join(root, "dm-0"))
	slices.Sort(got)
	if !slices.Equal(got, []string{"nvme0n1", "sda"}) {
		t.Errorf("%v", got)
	}
}

// TestDriveTellsOwnBytesFromForeignOnes writes with this process, then has
// another one read the same file past the cache.
func TestDriveTellsOwnBytesFromForeignOnes(t *testing.T) {
	const size = 32 << 20
	path := filepath.Join(t.TempDir(), "data")
	d, err := OpenDrive(filepath.Dir(path))
	if err != nil {
		t.Skipf("no drive to watch: %v", err) // a RAM disk or an overlay
	}
	defer d.Close()
	var start, written, end DriveSample
	d.Sample(&start)
	if !start.Has.All(HasDrive | HasOwn) {
		t.Fatalf("marks %b", start.Has)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, size)
	for i := range block {
		block[i] = byte(i * 7)
	}
	if _, err := f.Write(block); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	d.Sample(&written)
	if own := written.OwnWritten - start.OwnWritten; own < size || own > 2*size {
		t.Errorf("%d bytes of %d counted as written by this process", own, size)
	}
	if moved := written.Written - start.Written; moved < size {
		t.Errorf("the drive %s counts %d bytes written, want at least %d", d.Name(), moved, size)
	}
	// Linux adds what a child moved to its parent once the parent has waited for
	// it, so the reader must still live when the counters are read.
	reader := exec.Command("sh", "-c", `dd if="$0" of=/dev/null bs=1M iflag=direct 2>&1; echo done; read line`, path)
	hold, err := reader.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := reader.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Start(); err != nil {
		t.Fatal(err)
	}
	defer reader.Wait()
	defer hold.Close()
	var heard string
	for lines := bufio.NewScanner(said); lines.Scan() && lines.Text() != "done"; {
		heard += lines.Text() + "\n"
	}
	if !strings.Contains(heard, " copied") {
		t.Skipf("dd cannot read past the cache here: %s", heard)
	}
	// The drive's counters may lag by a moment on some drivers.
	for range 50 {
		d.Sample(&end)
		foreign, ok := Foreign(written, end)
		if !ok {
			t.Fatalf("marks %b", end.Has)
		}
		if foreign >= size*95/100 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	foreign, _ := Foreign(written, end)
	t.Errorf("another process read %d bytes, %d were noticed", size, foreign)
}

func TestOpenDriveSaysWhyNot(t *testing.T) {
	for _, path := range []string{"/proc/self/status", filepath.Join(t.TempDir(), "missing")} {
		if d, err := OpenDrive(path); err == nil {
			t.Errorf("%s lies on drive %s", path, d.Name())
		} else {
			t.Log(err)
		}
	}
}

func TestFactsFromFiles(t *testing.T) {
	for _, c := range []struct {
		name, release string
		files         map[string]string
		want          Facts
	}{
		{"a laptop", "6.8.0-45-alice", map[string]string{
			"etc/os-release": "NAME=x\nPRETTY_NAME=\"Ubuntu 24.04.1 LTS\"\n",
			"proc/cpuinfo":   "processor\t: 0\nmodel name\t: Intel(R) Core(TM) Ultra 7 155H\nflags\t\t: fpu vme\n",
			"sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n"},
			Facts{System: "Ubuntu 24.04.1 LTS", Kernel: "6.8.0", CPU: "Intel(R) Core(TM) Ultra 7 155H", Huge: "madvise"}},
		{"a guest", "6.1", map[string]string{"proc/cpuinfo": "flags : fpu hypervisor vme\n"}, Facts{Kernel: "6.1", Virtual: "a virtual machine"}},
		{"Windows' own Linux", "5.15.153.1-microsoft-standard-WSL2", map[string]string{"proc/cpuinfo": "flags : hypervisor\n"}, Facts{Kernel: "5.15.153.1", Virtual: "WSL"}},
		{"nothing", "", nil, Facts{}},
	} {
		var got Facts
		got.readBelow(tree(t, c.files), c.release)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Drives are told by where they hang, through partitions and encrypted volumes.
func TestFactsOfDrives(t *testing.T) {
	for _, c := range []struct {
		name, device string
		files        map[string]string
		links        map[string]string
		want         FileFacts
	}{
		{"a partition of an NVMe drive", "devices/pci0/nvme/nvme0/nvme0n1/nvme0n1p2", map[string]string{
			"devices/pci0/nvme/nvme0/nvme0n1/nvme0n1p2/partition":  "2\n",
			"devices/pci0/nvme/nvme0/nvme0n1/queue/rotational":     "0\n",
			"devices/pci0/nvme/nvme0/nvme0n1/device/model":         "WDC PC SN730 SDBQNTY-512G-1001          \n",
			"devices/pci0/nvme/nvme0/nvme0n1/device/serial":        "20123456\n",
			"devices/pci0/nvme/nvme0/nvme0n1/nvme0n1p2/device/any": ""}, nil,
			FileFacts{Drive: "nvme0n1", Bus: "nvme", Model: "WDC PC SN730 SDBQNTY-512G-1001", KnowsRotating: true, KnowsEncrypted: true}},
		{"an encrypted volume on a disk in a box", "devices/virtual/block/dm-0", map[string]string{
			"devices/virtual/block/dm-0/dm/uuid":                           "CRYPT-LUKS2-0123\n",
			"devices/pci0/usb2/2-1/ata1/host0/block/sda/queue/rotational":  "1\n",
			"devices/pci0/usb2/2-1/ata1/host0/block/sda/sda1/partition":    "1\n",
			"devices/pci0/usb2/2-1/ata1/host0/block/sda/device/no-model":   "",
			"devices/virtual/block/dm-0/slaves/.keep-the-folder-for-links": ""},
			map[string]string{"devices/virtual/block/dm-0/slaves/sda1": "devices/pci0/usb2/2-1/ata1/host0/block/sda/sda1"},
			FileFacts{Drive: "sda", Bus: "usb", Rotating: true, Encrypted: true, KnowsRotating: true, KnowsEncrypted: true}},
	} {
		root := tree(t, c.files)
		os.Remove(filepath.Join(root, "devices/virtual/block/dm-0/slaves/.keep-the-folder-for-links"))
		for at, to := range c.links {
			if err := os.Symlink(filepath.Join(root, to), filepath.Join(root, at)); err != nil {
				t.Fatal(err)
			}
		}
		var got FileFacts
		got.readBlock(filepath.Join(root, c.device))
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
