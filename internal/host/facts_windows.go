package host

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

func (f *Facts) read() {
	v := windows.RtlGetVersion()
	f.Kernel = fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
	f.System = "Windows"
	switch { // the registry's name of Windows 11 is that of Windows 10
	case v.MajorVersion == 10 && v.BuildNumber >= 22000:
		f.System = "Windows 11"
	case v.MajorVersion == 10:
		f.System = "Windows 10"
	}
	if release := registryText(`SOFTWARE\Microsoft\Windows NT\CurrentVersion`, "DisplayVersion"); release != "" {
		f.System += " " + release
	}
	f.CPU = registryText(`HARDWARE\DESCRIPTION\System\CentralProcessor\0`, "ProcessorNameString")
}

// registryText returns a value of the machine's registry, or nothing.
func registryText(path, name string) string {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.QUERY_VALUE)
	if err != nil {
		return ""
	}
	defer key.Close()
	text, _, err := key.GetStringValue(name)
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace([]byte(text)))
}

// What IOCTL_STORAGE_QUERY_PROPERTY of winioctl.h is asked for.
const (
	ioctlStorageQuery    = 0x2d1400
	propertyDevice       = 0 // STORAGE_DEVICE_DESCRIPTOR
	propertySeekPenalty  = 7 // DEVICE_SEEK_PENALTY_DESCRIPTOR
	descriptorProductAt  = 16
	descriptorBusAt      = 28
	descriptorSeekAt     = 8
	leastDeviceBytes     = 32
	leastSeekBytes       = 9
	storageQueryBytes    = 12 // STORAGE_PROPERTY_QUERY
	storageAnswerAtLeast = 1024
)

// buses are the values of STORAGE_BUS_TYPE that a model may lie on.
var buses = map[uint32]string{1: "scsi", 3: "sata", 6: "fibre", 7: "usb", 8: "raid", 9: "iscsi", 10: "sas", 11: "sata", 12: "sd", 13: "mmc", 14: "virtual", 15: "file", 16: "spaces", 17: "nvme", 19: "ufs"}

func (f *FileFacts) read(path string) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return
	}
	volume := filepath.VolumeName(absolute)
	root, err := windows.UTF16PtrFromString(volume + `\`)
	if err != nil {
		return
	}
	var kind [windows.MAX_PATH + 1]uint16
	if windows.GetVolumeInformation(root, nil, 0, nil, nil, nil, &kind[0], uint32(len(kind))) == nil {
		f.FileSystem = windows.UTF16ToString(kind[:])
	}
	if len(volume) != 2 || volume[1] != ':' {
		return
	}
	f.Drive = volume
	device, err := windows.UTF16PtrFromString(`\\.\` + volume)
	if err != nil {
		return
	}
	// Without access rights: what is asked for needs none.
	h, err := windows.CreateFile(device, 0, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		return
	}
	defer windows.CloseHandle(h)
	if answer := storageProperty(h, propertyDevice); len(answer) >= leastDeviceBytes {
		f.Bus = buses[binary.LittleEndian.Uint32(answer[descriptorBusAt:])]
		f.Model = descriptorText(answer, binary.LittleEndian.Uint32(answer[descriptorProductAt:]))
	}
	if answer := storageProperty(h, propertySeekPenalty); len(answer) >= leastSeekBytes {
		f.KnowsRotating, f.Rotating = true, answer[descriptorSeekAt] != 0
	}
}

// storageProperty returns a descriptor of a volume's drive, or nothing.
func storageProperty(h windows.Handle, property uint32) []byte {
	var query [storageQueryBytes]byte // property, a standard query, no parameters
	binary.LittleEndian.PutUint32(query[:], property)
	answer := make([]byte, storageAnswerAtLeast)
	var n uint32
	if windows.DeviceIoControl(h, ioctlStorageQuery, &query[0], storageQueryBytes, &answer[0], uint32(len(answer)), &n, nil) != nil {
		return nil
	}
	return answer[:n]
}

// descriptorText returns the text that begins at an offset of a descriptor; 0 means
// that there is none.
func descriptorText(answer []byte, at uint32) string {
	if at == 0 || int64(at) >= int64(len(answer)) {
		return ""
	}
	text, _, _ := bytes.Cut(answer[at:], []byte{0})
	return string(bytes.TrimSpace(text))
}
