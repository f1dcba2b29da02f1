/** The name of a session without a name: how its first message begins. */
export function firstWords(message: string, longest = 60): string {
  const line = message.trim().split('\n')[0]?.trim() ?? ''
  return line.length > longest ? `${line.slice(0, longest).replace(/\s+\S*$/, '')}…` : line
}
