/** Short messages at the edge of the page: something failed, or can still be undone. */

import { said } from '../api/call.ts'

export interface Toast {
  id: number
  text: string
  failed: boolean
  action: { text: string; run: () => void } | null
}

const SHOWN_MS = 7000
/** Long enough to read what happened and to decide what to do about it. */
export const DECIDE_MS = 60_000

class Toasts {
  list: Toast[] = $state([])
  /** Where they can be shown; the one that came last lies on top and shows them. */
  places: string[] = $state([])
  #next = 1

  show(text: string, options: { failed?: boolean; action?: Toast['action']; shownMs?: number } = {}): number {
    const id = this.#next++
    this.list.push({ id, text, failed: options.failed ?? false, action: options.action ?? null })
    setTimeout(() => this.close(id), options.shownMs ?? SHOWN_MS)
    return id
  }

  /** Tell why something did not work. Use it as `.catch(toasts.failed)`. */
  failed = (error: unknown): void => {
    this.show(said(error), { failed: true })
  }

  close(id: number): void {
    this.list = this.list.filter((toast) => toast.id !== id)
  }
}

export const UNDO_MS = SHOWN_MS
export const toasts = new Toasts()
