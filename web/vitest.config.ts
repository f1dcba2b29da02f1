import { svelteTesting } from '@testing-library/svelte/vite'
import { defineConfig, mergeConfig } from 'vitest/config'
import app from './vite.config.ts'

// One process for all files: starting one for each takes most of the time, and the tests share nothing.
export default mergeConfig(
  app,
  defineConfig({ plugins: [svelteTesting()], test: { include: ['src/**/*.test.ts'], isolate: false } }),
)
