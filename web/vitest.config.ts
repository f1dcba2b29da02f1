import { svelteTesting } from '@testing-library/svelte/vite'
import { defineConfig, mergeConfig } from 'vitest/config'
import app from './vite.config.ts'

export default mergeConfig(app, defineConfig({ plugins: [svelteTesting()], test: { include: ['src/**/*.test.ts'] } }))
