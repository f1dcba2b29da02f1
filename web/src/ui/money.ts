/** A price as it is read at a glance: never rounded to nothing. Null means that it is unknown. */
export function dollars(cost: string | number | null): string {
  if (cost === null) return 'no known price'
  const value = Number(cost)
  if (value === 0) return '$0'
  if (value < 0.0001) return '< $0.0001'
  return `$${value < 1 ? value.toPrecision(2) : value.toFixed(2)}`
}
