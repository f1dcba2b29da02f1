/** JSON as people read it; what is no JSON stays as it is. */
export function pretty(text: string): { text: string; language: string } {
  try {
    return { text: JSON.stringify(JSON.parse(text), null, 2), language: 'json' }
  } catch {
    return { text, language: '' }
  }
}

/** The beginning of a call's arguments in one line. */
export function glance(text: string, longest = 80): string {
  let line = text
  try {
    const value: unknown = JSON.parse(text)
    if (value && typeof value === 'object' && !Array.isArray(value)) {
      line = Object.entries(value)
        .map(([name, part]) => `${name}: ${typeof part === 'string' ? part : JSON.stringify(part)}`)
        .join(', ')
    }
  } catch {
    // It is shown as the model wrote it.
  }
  line = line.replace(/\s+/g, ' ').trim()
  return line.length > longest ? `${line.slice(0, longest)}…` : line
}
