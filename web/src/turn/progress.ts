import type { ToolProgressEvent } from '../api/schema.ts'

/** How far a running tool has come, in a few words. */
export function progressOf({ progress, total, message }: ToolProgressEvent): string {
  const far = total ? `${Math.round((100 * progress) / total)}%` : String(progress)
  return message ? `${message} (${far})` : `The tool is running (${far})`
}
