/**
 * What the screen is like: `narrow` is a phone, where there is one column and the rest are sheets. `tight` is a tablet
 * too, where the sessions are a sheet, so that a conversation and its panel have room.
 */

import { MediaQuery } from 'svelte/reactivity'

export const narrow = new MediaQuery('max-width: 52rem')
export const tight = new MediaQuery('max-width: 68rem')
