package jinja

import "slices"

// dictMethods are the methods of Python's dict.
var dictMethods map[string]func(st *state, d *Dict, a *arguments) any

// listMethods are the methods of Python's list.
var listMethods map[string]func(st *state, l *List, a *arguments) any

func init() {
	dictMethods = map[string]func(st *state, d *Dict, a *arguments) any{
		"copy":  func(st *state, d *Dict, a *arguments) any { return st.copyDict(d) },
		"get":   dictGet,
		"items": func(st *state, d *Dict, a *arguments) any { return &List{Items: st.pairs(d), kind: isView} },
		"keys": func(st *state, d *Dict, a *arguments) any {
			return &List{Items: st.copyList(d).Items, kind: isView}
		},
		"pop":        dictPop,
		"setdefault": dictSetDefault,
		"update":     dictUpdate,
		"values": func(st *state, d *Dict, a *arguments) any {
			st.alloc(16 * d.Len())
			return &List{Items: slices.Clone(d.vals), kind: isView}
		},
	}
	listMethods = map[string]func(st *state, l *List, a *arguments) any{
		"append": func(st *state, l *List, a *arguments) any {
			st.alloc(16)
			l.Items = append(l.Items, st.arg(a, 0, "object"))
			return nil
		},
		"copy":  func(st *state, l *List, a *arguments) any { return st.copyList(l) },
		"count": listCount,
		"extend": func(st *state, l *List, a *arguments) any {
			items := st.items(st.arg(a, 0, "iterable"))
			st.alloc(16 * len(items))
			l.Items = append(l.Items, items...)
			return nil
		},
		"index":  listIndex,
		"insert": listInsert,
		"pop":    listPop,
		"reverse": func(st *state, l *List, a *arguments) any {
			st.charge(len(l.Items))
			slices.Reverse(l.Items)
			return nil
		},
	}
}

// arg returns an argument that must be given.
func (st *state) arg(a *arguments, i int, name string) any {
	v, ok := a.take(i, name)
	if !ok {
		fail(st.line, "argument %s is missing", name)
	}
	return v
}

func (st *state) copyDict(d *Dict) *Dict {
	st.alloc(64 * d.Len())
	return d.Clone()
}

func dictGet(st *state, d *Dict, a *arguments) any {
	if v, ok := d.get(st.hashKey(st.arg(a, 0, "key"))); ok {
		return v
	}
	v, _ := a.take(1, "default")
	return v
}

func dictPop(st *state, d *Dict, a *arguments) any {
	key := st.hashKey(st.arg(a, 0, "key"))
	if v, ok := d.get(key); ok {
		d.remove(st, key)
		return v
	}
	v, ok := a.take(1, "default")
	if !ok {
		fail(st.line, "pop: no such key")
	}
	return v
}

func dictSetDefault(st *state, d *Dict, a *arguments) any {
	original := st.arg(a, 0, "key")
	key := st.hashKey(original)
	if v, ok := d.get(key); ok {
		return v
	}
	v, _ := a.take(1, "default")
	st.alloc(64)
	d.setAs(key, original, v)
	return v
}

func dictUpdate(st *state, d *Dict, a *arguments) any {
	if v, ok := a.take(0, "other"); ok {
		other, ok := v.(*Dict)
		if !ok {
			fail(st.line, "update needs a dict, not %s", typeName(v))
		}
		st.alloc(64 * other.Len())
		for i, k := range slices.Clone(other.keys) {
			d.setAs(st.hashKey(k), k, other.vals[i])
		}
	}
	for i, n := range a.names {
		d.set(n, a.named[i])
	}
	return nil
}

func listCount(st *state, l *List, a *arguments) any {
	n, v := int64(0), st.arg(a, 0, "value")
	for _, item := range l.Items {
		if st.equal(item, v, 0) {
			n++
		}
	}
	return n
}

func listIndex(st *state, l *List, a *arguments) any {
	v := st.arg(a, 0, "value")
	for i, item := range l.Items {
		if st.equal(item, v, 0) {
			return int64(i)
		}
	}
	fail(st.line, "index: no such item")
	return nil
}

func listInsert(st *state, l *List, a *arguments) any {
	i, n := st.intArg(a, 0, "index", 0), int64(len(l.Items))
	if i < 0 {
		i += n
	}
	st.alloc(16)
	st.charge(len(l.Items) / 16)
	l.Items = slices.Insert(l.Items, int(min(max(i, 0), n)), st.arg(a, 1, "object"))
	return nil
}

func listPop(st *state, l *List, a *arguments) any {
	n := int64(len(l.Items))
	i := st.intArg(a, 0, "index", n-1)
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		fail(st.line, "pop: no such item")
	}
	v := l.Items[i]
	st.charge(len(l.Items) / 16)
	l.Items = slices.Delete(l.Items, int(i), int(i)+1)
	return v
}
