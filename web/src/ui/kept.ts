/** Values that outlive the page: in the browser's own storage, or only in memory where that is switched off. */

const PREFIX = 'windowpane:'
const memory = new Map<string, string>()

export interface Kept<T> {
  value: T | null
}

export function kept<T>(name: string): Kept<T> {
  const key = PREFIX + name
  return {
    get value(): T | null {
      const text = read(key)
      if (text === null) return null
      try {
        return JSON.parse(text) as T
      } catch {
        return null
      }
    },
    set value(value: T | null) {
      if (value === null) remove(key)
      else write(key, JSON.stringify(value))
    },
  }
}

function read(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return memory.get(key) ?? null
  }
}

function write(key: string, text: string): void {
  try {
    localStorage.setItem(key, text)
  } catch {
    memory.set(key, text)
  }
}

function remove(key: string): void {
  memory.delete(key)
  try {
    localStorage.removeItem(key)
  } catch {
    // There was nothing to remove.
  }
}
