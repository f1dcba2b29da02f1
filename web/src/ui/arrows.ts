/** Which way an arrow key leads, or 0: not with another key, nor where what has the focus needs it itself. */

const TAKEN = 'input, textarea, select, pre, [role="slider"], [role="region"]'

export function stepOf(event: KeyboardEvent, back: readonly string[], on: readonly string[]): -1 | 0 | 1 {
  if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return 0
  if (event.target instanceof HTMLElement && event.target.closest(TAKEN)) return 0
  return back.includes(event.key) ? -1 : on.includes(event.key) ? 1 : 0
}
