/** Moments in the words of the reader's own language. */

const SAME_DAY = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const SAME_YEAR = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })
const ELSE = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' })
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'medium' })

export function shortTime(at: string, now: Date = new Date()): string {
  const time = new Date(at)
  if (time.toDateString() === now.toDateString()) return SAME_DAY.format(time)
  return time.getFullYear() === now.getFullYear() ? SAME_YEAR.format(time) : ELSE.format(time)
}

export function fullTime(at: string): string {
  return FULL.format(new Date(at))
}

/** A span as it is read at a glance: `240 ms`, `1.3 s`. */
export function span(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`
}

const COMPACT = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 })

/** A count as it is read at a glance: `1.2K`. */
export function compact(count: number): string {
  return COMPACT.format(count)
}
