if plain then
    if not state then return part end
    if told then fresh = (clock[1] + 3600) * 1000000 end
    call('SET', key, state, 'PXAT', (fresh - fresh % 1000) / 1000 .. '')
    return after
end
