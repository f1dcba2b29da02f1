/** Files on their way into a message: read from the disk, or from the message that is sent again. */

import { address } from '../api/call.ts'
import { OPERATIONS, type Attachment, type FileBody } from '../api/schema.ts'

/** How the base64 of images begins. What else it is the server finds out. */
const IMAGES = { iVBOR: 'png', '/9j/': 'jpeg', R0lGO: 'gif', UklGR: 'webp' }

/** What is shown of a file: `src` is a picture of it, `href` where it can be had; `keep`: it is for the session. */
export type Shown = { name: string; src: string | null; href: string | null; keep?: boolean }

export async function picked(files: Iterable<File>): Promise<FileBody[]> {
  return Promise.all([...files].map(async (file) => ({ name: file.name || 'file', data: await base64(file) })))
}

/** Return the files of a message as they were sent, to send them again. */
export async function again(session: string, attachments: Attachment[]): Promise<FileBody[]> {
  return Promise.all(
    attachments.map(async ({ name, blob }) => {
      const response = await fetch(placeOf(session, blob))
      if (!response.ok) throw new Error(`${name} is not there any more.`)
      return { name, data: await base64(await response.blob()) }
    }),
  )
}

export function shownDraft({ name, data, keep }: FileBody & { keep: boolean }): Shown {
  const kind = Object.entries(IMAGES).find(([start]) => data.startsWith(start))?.[1]
  return { name, src: kind ? `data:image/${kind};base64,${data}` : null, href: null, keep }
}

export function shownSent(session: string, { name, media_type, blob }: Attachment): Shown {
  const place = placeOf(session, blob)
  return { name, src: media_type.startsWith('image/') ? place : null, href: place }
}

function placeOf(session: string, blob: string): string {
  return address(OPERATIONS.read_attachment_file[1], { session_id: session, blob })
}

function base64(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve((reader.result as string).replace(/^[^,]*,/, ''))
    reader.onerror = () => reject(new Error('The file could not be read.'))
    reader.readAsDataURL(file)
  })
}
