/** What differs between two texts, line by line: the fewest lines taken away and added (Myers, 1986). */

export type LineKind = 'same' | 'old' | 'new'
/** One line, with its number in the text before and in the text after; null where it is not there. */
export type Line = { kind: LineKind; text: string; before: number | null; after: number | null }
/** Lines that differ, with some that do not around them. */
export type Hunk = Line[]

const AROUND = 3
/** Texts that differ by more lines than this are shown as one replaced by the other: finding less would take too long. */
const MOST_DIFFERENCES = 500

export function lineDiff(before: string, after: string): Line[] {
  const old = split(before)
  const now = split(after)
  let start = 0
  while (start < old.length && start < now.length && old[start] === now[start]) start++
  let end = 0
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end++
  const middle = script(old.slice(start, old.length - end), now.slice(start, now.length - end))
  const kinds: LineKind[] = [...same(start), ...middle, ...same(end)]
  return numbered(kinds, old, now)
}

/** Return the lines that differ in groups, each with a few others around it. */
export function hunks(lines: readonly Line[], around: number = AROUND): Hunk[] {
  const shown = new Set<number>()
  lines.forEach(({ kind }, at) => {
    if (kind !== 'same') for (let near = at - around; near <= at + around; near++) shown.add(near)
  })
  const found: Hunk[] = []
  lines.forEach((line, at) => {
    if (!shown.has(at)) return
    if (shown.has(at - 1) && at > 0) found.at(-1)!.push(line)
    else found.push([line])
  })
  return found
}

function same(count: number): LineKind[] {
  return Array.from({ length: count }, () => 'same')
}

/** A text's lines. What stands after the last line break is a line only if there is something. */
function split(text: string): string[] {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines
}

function numbered(kinds: readonly LineKind[], old: readonly string[], now: readonly string[]): Line[] {
  let before = 0
  let after = 0
  return kinds.map((kind) => {
    if (kind === 'old') return { kind, text: old[before]!, before: ++before, after: null }
    if (kind === 'new') return { kind, text: now[after]!, before: null, after: ++after }
    return { kind, text: old[before]!, before: ++before, after: ++after }
  })
}

function script(old: readonly string[], now: readonly string[]): LineKind[] {
  const furthest = new Map<number, number>([[1, 0]])
  const history: Map<number, number>[] = []
  const most = Math.min(old.length + now.length, MOST_DIFFERENCES)
  for (let count = 0; count <= most; count++) {
    history.push(new Map(furthest))
    for (let diagonal = -count; diagonal <= count; diagonal += 2) {
      const down =
        diagonal === -count || (diagonal !== count && furthest.get(diagonal - 1)! < furthest.get(diagonal + 1)!)
      let x = down ? furthest.get(diagonal + 1)! : furthest.get(diagonal - 1)! + 1
      while (x < old.length && x - diagonal < now.length && old[x] === now[x - diagonal]) x++
      furthest.set(diagonal, x)
      if (x >= old.length && x - diagonal >= now.length) return walked(history, old.length, now.length)
    }
  }
  return [...old.map((): LineKind => 'old'), ...now.map((): LineKind => 'new')]
}

/** Walk back from the end, along the way that was found. */
function walked(history: readonly Map<number, number>[], x: number, y: number): LineKind[] {
  const kinds: LineKind[] = []
  for (let count = history.length - 1; count > 0; count--) {
    const furthest = history[count]!
    const diagonal = x - y
    const down =
      diagonal === -count || (diagonal !== count && furthest.get(diagonal - 1)! < furthest.get(diagonal + 1)!)
    const previous = down ? diagonal + 1 : diagonal - 1
    const fromX = furthest.get(previous)!
    const fromY = fromX - previous
    while (x > fromX && y > fromY) {
      kinds.push('same')
      x--
      y--
    }
    kinds.push(down ? 'new' : 'old')
    x = fromX
    y = fromY
  }
  while (x > 0) {
    kinds.push('same')
    x--
  }
  return kinds.reverse()
}
