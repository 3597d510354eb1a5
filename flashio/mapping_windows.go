package flashio

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
)

// SectionsExist tells whether a mapping has a section beside its view: here it
// has.
const SectionsExist = true

type section = windows.Handle

// mapFile closes its handle of the file: the section keeps the file by itself,
// and a leftover handle can keep the slow path (docs/windows.md).
func mapFile(path string) (unsafe.Pointer, int, section, error) {
	h, err := createFile(path, windows.GENERIC_READ, windows.FILE_ATTRIBUTE_NORMAL)
	if err != nil {
		return nil, 0, 0, err
	}
	defer windows.CloseHandle(h)
	info, err := handleInfo(h)
	if err != nil {
		return nil, 0, 0, err
	}
	size := int64(info.FileSizeHigh)<<32 | int64(info.FileSizeLow)
	if size == 0 {
		return nil, 0, 0, errors.New("the file is empty")
	}
	sec, err := windows.CreateFileMapping(h, nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, 0, 0, os.NewSyscallError("CreateFileMapping", err)
	}
	addr, err := windows.MapViewOfFile(sec, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		err = os.NewSyscallError("MapViewOfFile", err)
		return nil, 0, 0, errors.Join(err, closeSection(sec))
	}
	return pointer(addr), int(size), sec, nil
}

// pointer turns an address that the system gave into a pointer. It does not
// point into the Go heap, so nothing can move under it.
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

func unmapView(p unsafe.Pointer, _ int) error {
	return os.NewSyscallError("UnmapViewOfFile", windows.UnmapViewOfFile(uintptr(p)))
}

func closeSection(s section) error {
	if s == 0 {
		return nil
	}
	return os.NewSyscallError("CloseHandle", windows.CloseHandle(s))
}

const memMapped = 0x40000 // MEM_MAPPED (winnt.h)

// insideMapping asks VirtualQuery what lies at each address, and for mapped
// views which file it is.
func insideMapping(s *Files, ptrs []uintptr) ([]int, error) {
	names, err := s.ntNames()
	if err != nil {
		return nil, err
	}
	return insideBy(ptrs, func(p uintptr) (span, bool, error) {
		var m windows.MemoryBasicInformation
		if err := windows.VirtualQuery(p, &m, unsafe.Sizeof(m)); err != nil {
			// Addresses above the user's space are in no mapping.
			if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
				return span{p, p + 1}, false, nil
			}
			return span{}, false, os.NewSyscallError("VirtualQuery", err)
		}
		sp := span{m.BaseAddress, m.BaseAddress + m.RegionSize}
		if m.State != windows.MEM_COMMIT || m.Type != memMapped {
			return sp, false, nil
		}
		name, err := mappedName(p)
		if err != nil {
			return span{}, false, err
		}
		ofSet, err := s.isNamed(name, names)
		return sp, ofSet, err
	})
}

// mappedName returns the device path of the file mapped at an address.
func mappedName(p uintptr) (string, error) {
	buf := make([]uint16, 32<<10)
	n, _, err := procGetMappedName.Call(uintptr(windows.CurrentProcess()), p, uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
	if n == 0 {
		return "", os.NewSyscallError("GetMappedFileName", err)
	}
	return windows.UTF16ToString(buf[:n]), nil
}

// ntNames returns the device paths of the set's files, which is how mappings
// name them.
func (s *Files) ntNames() ([]string, error) {
	const volumeNameNT = 2 // VOLUME_NAME_NT
	names := make([]string, len(s.files))
	buf := make([]uint16, 32<<10)
	for i := range s.files {
		h, err := createFile(s.files[i].Path, windows.FILE_READ_ATTRIBUTES, windows.FILE_ATTRIBUTE_NORMAL)
		if err != nil {
			return nil, err
		}
		n, err := windows.GetFinalPathNameByHandle(h, &buf[0], uint32(len(buf)), volumeNameNT)
		if err := errors.Join(os.NewSyscallError("GetFinalPathNameByHandle", err), os.NewSyscallError("CloseHandle", windows.CloseHandle(h))); err != nil {
			return nil, fmt.Errorf("name %s: %w", s.files[i].Path, err)
		}
		names[i] = windows.UTF16ToString(buf[:n])
	}
	return names, nil
}

// isNamed compares a mapping's name with the set's, and where no name is equal
// the identity of the file behind it: it may be another link to the same file,
// or another spelling (Wine names mappings by drive letter).
func (s *Files) isNamed(name string, names []string) (bool, error) {
	for _, n := range names {
		if strings.EqualFold(n, name) {
			return true, nil
		}
	}
	path := `\\?\GLOBALROOT` + name
	if drive, ok := strings.CutPrefix(name, `\??\`); ok {
		path = `\\?\` + drive
	}
	h, err := createFile(path, windows.FILE_READ_ATTRIBUTES, windows.FILE_ATTRIBUTE_NORMAL)
	if err != nil {
		return false, err
	}
	defer windows.CloseHandle(h)
	info, err := handleInfo(h)
	if err != nil {
		return false, fmt.Errorf("ask about %s: %w", name, err)
	}
	for i := range s.files {
		if s.files[i].ID == infoID(info) {
			return true, nil
		}
	}
	return false, nil
}

// adviseSequential has nothing to say here: PrefetchVirtualMemory is a hint
// that did not help where it was tried (ggml-org/llama.cpp#869).
func adviseSequential([]byte) {}

// residentPages asks for the pages in this process's working set.
func residentPages(b []byte) (resident, pages int, err error) {
	page := os.Getpagesize()
	base := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	pages = (len(b) + page - 1) / page
	info := make([]windows.PSAPI_WORKING_SET_EX_INFORMATION, min(pages, 4096))
	for done := 0; done < pages; {
		part := info[:min(len(info), pages-done)]
		for i := range part {
			part[i] = windows.PSAPI_WORKING_SET_EX_INFORMATION{VirtualAddress: windows.Pointer(pointer(base + uintptr((done+i)*page)))}
		}
		size := uintptr(len(part)) * unsafe.Sizeof(part[0])
		if err := windows.QueryWorkingSetEx(windows.CurrentProcess(), uintptr(unsafe.Pointer(&part[0])), uint32(size)); err != nil {
			return 0, 0, os.NewSyscallError("QueryWorkingSetEx", err)
		}
		for i := range part {
			if part[i].VirtualAttributes.Valid() {
				resident++
			}
		}
		done += len(part)
	}
	return resident, pages, nil
}
