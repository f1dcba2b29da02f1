/** Search settings that differ from those of a turn, in the form that a replay takes. */

export const TUNABLE = ['floor', 'share_of_best', 'include_score', 'top_n'] as const
export type Tunable = (typeof TUNABLE)[number]
export type Domain = 'text' | 'tools'
export type Values = Record<Domain, Record<Tunable, number>>

/** Return the settings that a turn's selection ran under; null when its record does not say. */
export function recorded(search: Record<string, unknown>): Values | null {
  const of = (domain: Domain) => {
    const found = search[domain] as Record<string, unknown> | undefined
    return found && TUNABLE.every((name) => typeof found[name] === 'number') ? (found as Record<Tunable, number>) : null
  }
  const [text, tools] = [of('text'), of('tools')]
  return text && tools ? { text: picked(text), tools: picked(tools) } : null
}

/** Return what is different, by group, and nothing else. */
export function changes(was: Values, now: Values): Partial<Record<Domain, Partial<Record<Tunable, number>>>> {
  const found: ReturnType<typeof changes> = {}
  for (const domain of ['text', 'tools'] as const) {
    for (const name of TUNABLE) {
      const value = now[domain][name]
      if (Number.isFinite(value) && value !== was[domain][name]) (found[domain] ??= {})[name] = value
    }
  }
  return found
}

/** Return the values with some of them as given; what cannot be tuned here is left alone. */
export function withSettings(values: Values, given: Record<string, Record<string, unknown>>): Values {
  const of = (domain: Domain) => ({ ...values[domain], ...known(given[domain] ?? {}) })
  return { text: of('text'), tools: of('tools') }
}

function known(given: Record<string, unknown>): Partial<Record<Tunable, number>> {
  return Object.fromEntries(
    TUNABLE.filter((name) => typeof given[name] === 'number').map((name) => [name, given[name] as number]),
  )
}

function picked(from: Record<Tunable, number>): Record<Tunable, number> {
  return { floor: from.floor, share_of_best: from.share_of_best, include_score: from.include_score, top_n: from.top_n }
}
