/** How an item came in, as people read it: `Always`, `Manual`, `Agent - 0.87`. */
export function badgeText(mode: 'always' | 'manual' | 'agent', score: number | null = null): string {
  const name = mode.charAt(0).toUpperCase() + mode.slice(1)
  return mode === 'agent' && score !== null ? `${name} - ${score.toFixed(2)}` : name
}
