package flashio

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// fileHandle reads through a raw handle of its own. os.File is no alternative:
// its ReadAt holds an exclusive lock and seeks, so reads queue.
type fileHandle struct {
	h    windows.Handle
	at   windows.Overlapped // carries the offset; kept here so that no read allocates
	done uint32
}

// shareAll lets others read, write, rename and delete the file meanwhile.
const shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE

func createFile(path string, access, flags uint32) (windows.Handle, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: path, Err: err}
	}
	h, err := windows.CreateFile(name, access, shareAll, nil, windows.OPEN_EXISTING, flags, 0)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return h, nil
}

func systemOpen(path string, direct bool) (Handle, error) {
	flags := uint32(windows.FILE_ATTRIBUTE_NORMAL)
	if direct {
		flags |= windows.FILE_FLAG_NO_BUFFERING
	}
	h, err := createFile(path, windows.GENERIC_READ, flags)
	if err != nil {
		if direct && refusesDirect(err) {
			return nil, NoDirect(err)
		}
		return nil, err
	}
	return &fileHandle{h: h}, nil
}

func (f *fileHandle) ReadAt(p []byte, off int64) (int, error) {
	// One call takes 32 bits of length. 1 GiB keeps any alignment.
	p = p[:min(len(p), 1<<30)]
	f.at = windows.Overlapped{Offset: uint32(off), OffsetHigh: uint32(off >> 32)}
	f.done = 0
	switch err := windows.ReadFile(f.h, p, &f.done, &f.at); err {
	case nil, windows.ERROR_HANDLE_EOF:
		return int(f.done), nil
	default:
		return int(f.done), os.NewSyscallError("ReadFile", err)
	}
}

func (f *fileHandle) Close() error {
	return os.NewSyscallError("CloseHandle", windows.CloseHandle(f.h))
}

// refusesDirect reports whether an open, or a first direct read, failed because
// unbuffered I/O is not possible, not because the drive failed.
func refusesDirect(err error) bool {
	return errors.Is(err, windows.ERROR_INVALID_PARAMETER) ||
		errors.Is(err, windows.ERROR_NOT_SUPPORTED) ||
		errors.Is(err, windows.ERROR_INVALID_FUNCTION)
}

func systemFacts(path string) (Facts, error) {
	// No access to the contents is asked for, and a directory can be opened.
	h, err := createFile(path, windows.FILE_READ_ATTRIBUTES, windows.FILE_FLAG_BACKUP_SEMANTICS)
	if err != nil {
		return Facts{}, err
	}
	defer windows.CloseHandle(h)
	info, err := handleInfo(h)
	if err != nil {
		return Facts{}, fmt.Errorf("ask about %s: %w", path, err)
	}
	if info.FileAttributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0 {
		return Facts{}, fmt.Errorf("open %s: is a directory, not a file", path)
	}
	f := Facts{
		Size:     int64(info.FileSizeHigh)<<32 | int64(info.FileSizeLow),
		Modified: info.LastWriteTime.Nanoseconds(),
		ID:       infoID(info),
		Page:     os.Getpagesize(),
	}
	f.Logical, f.Physical = sectors(h, path)
	return f, nil
}

func handleInfo(h windows.Handle) (*windows.ByHandleFileInformation, error) {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &info); err != nil {
		return nil, os.NewSyscallError("GetFileInformationByHandle", err)
	}
	return &info, nil
}

func infoID(i *windows.ByHandleFileInformation) FileID {
	return FileID{uint64(i.VolumeSerialNumber), uint64(i.FileIndexHigh)<<32 | uint64(i.FileIndexLow)}
}

// fileStorageInfo is FILE_STORAGE_INFO (winbase.h).
type fileStorageInfo struct {
	logical            uint32 // bytes per logical sector
	physicalAtomic     uint32
	physicalBest       uint32 // bytes per physical sector, for performance
	effectiveAtomic    uint32
	flags              uint32
	offsetForSector    uint32
	offsetForPartition uint32
}

var (
	kernel32          = windows.NewLazySystemDLL("kernel32.dll")
	procGetDiskFree   = kernel32.NewProc("GetDiskFreeSpaceW")
	procGetMappedName = kernel32.NewProc("K32GetMappedFileNameW")
)

// sectors asks for the drive's sector sizes, which direct reads keep to. They
// are zero where the system does not say.
func sectors(h windows.Handle, path string) (logical, physical int) {
	var s fileStorageInfo
	err := windows.GetFileInformationByHandleEx(h, windows.FileStorageInfo, (*byte)(unsafe.Pointer(&s)), uint32(unsafe.Sizeof(s)))
	if err == nil {
		return int(s.logical), int(s.physicalBest)
	}
	// Older systems, shares and Wine know the volume's sector only.
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(path) + `\`)
	if err != nil {
		return 0, 0
	}
	var perCluster, perSector, free, total uint32
	ok, _, _ := procGetDiskFree.Call(uintptr(unsafe.Pointer(root)), uintptr(unsafe.Pointer(&perCluster)),
		uintptr(unsafe.Pointer(&perSector)), uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total)))
	if ok == 0 {
		return 0, 0
	}
	return int(perSector), 0
}
