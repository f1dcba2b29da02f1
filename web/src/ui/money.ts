import { counted } from './words.ts'

/** A price as it is read at a glance: never rounded to nothing. Null means that it is unknown. */
export function dollars(cost: string | number | null): string {
  if (cost === null) return 'no known price'
  const value = Number(cost)
  if (value === 0) return '$0'
  if (value < 0.0001) return '< $0.0001'
  return `$${value < 1 ? value.toPrecision(2) : value.toFixed(2)}`
}

/** What calls cost together; nothing is "free", which is not the same as unknown. `unknown` more calls may have cost. */
export function costText(cost: string | number, unknown = 0): string {
  if (!unknown) return Number(cost) === 0 ? 'free' : dollars(cost)
  return `${dollars(cost)} (${counted(unknown, 'call')} unknown)`
}
