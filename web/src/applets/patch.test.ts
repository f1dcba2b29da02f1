import { expect, test } from 'vitest'
import { patchOf } from './patch.ts'

const PATCH = `diff --git a/docs/a b.md b/docs/a b.md
index 1..2 100644
--- a/docs/a b.md\t
+++ b/docs/a b.md\t
@@ -1,3 +1,3 @@ heading
 one
-two
---- not a header
+2
\\ No newline at end of file
@@ -10 +10,2 @@
 ten
+eleven
diff --git a/<img src=x onerror=alert(1)> b/<img src=x onerror=alert(1)>
deleted file mode 100644
--- a/<img src=x onerror=alert(1)>\t
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/logo.png b/logo.png
index 1..2 100644
Binary files a/logo.png and b/logo.png differ
diff --git "a/\\303\\274 \\"q\\"" "b/\\303\\274 \\"q\\""
--- "a/\\303\\274 \\"q\\""
+++ "b/\\303\\274 \\"q\\""
@@ -1 +1 @@
-a
+b
diff --git a/old b/new
similarity index 100%
rename from old
rename to new
`

test('every file has its lines, under its own name', () => {
  const files = patchOf(PATCH)
  expect([...files.keys()]).toEqual(['docs/a b.md', '<img src=x onerror=alert(1)>', 'logo.png', 'ü "q"', 'new'])
  expect(files.get('docs/a b.md')).toEqual([
    [
      { kind: 'same', text: 'one', before: 1, after: 1 },
      { kind: 'old', text: 'two', before: 2, after: null },
      { kind: 'old', text: '--- not a header', before: 3, after: null },
      { kind: 'new', text: '2', before: null, after: 2 },
    ],
    [
      { kind: 'same', text: 'ten', before: 10, after: 10 },
      { kind: 'new', text: 'eleven', before: null, after: 11 },
    ],
  ])
  expect(files.get('logo.png')).toEqual([])
  expect(files.get('new')).toEqual([])
})

test('a patch that was cut off gives what there is of it', () => {
  expect(patchOf(PATCH.slice(0, 120)).size).toBe(1)
  expect(patchOf('')).toEqual(new Map())
})
