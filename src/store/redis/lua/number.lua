-- SPDX-License-Identifier: Apache-2.0
-- Whole numbers of any size, for the few places where a double's 2^53 is not enough: digits to the
-- base 2^24, the lowest first. Slow and plain: only a changed rate, and two products that are
-- nearly the same, come here.
local function open_number()
    local DIGIT = 16777216
    local number = {}

    function number.of(value)
        local digits = {}
        while value > 0 do
            digits[#digits + 1] = value % DIGIT
            value = (value - value % DIGIT) / DIGIT
        end
        return digits
    end

    -- The double with this value; above 2^53 some double near it, above it too.
    function number.value(digits)
        local value = 0
        for i = #digits, 1, -1 do value = value * DIGIT + digits[i] end
        return value
    end

    local function trim(digits)
        while digits[#digits] == 0 do digits[#digits] = nil end
        return digits
    end

    function number.multiply(a, b)
        local digits = {}
        for i = 1, #a + #b do digits[i] = 0 end
        for i = 1, #a do
            local carry = 0
            for j = 1, #b do
                local sum = digits[i + j - 1] + a[i] * b[j] + carry
                digits[i + j - 1] = sum % DIGIT
                carry = (sum - sum % DIGIT) / DIGIT
            end
            digits[i + #b] = carry
        end
        return trim(digits)
    end

    function number.add(a, b)
        local digits, carry = {}, 0
        for i = 1, math.max(#a, #b) + 1 do
            local sum = (a[i] or 0) + (b[i] or 0) + carry
            digits[i] = sum % DIGIT
            carry = (sum - sum % DIGIT) / DIGIT
        end
        return trim(digits)
    end

    function number.less(a, b)
        if #a ~= #b then return #a < #b end
        for i = #a, 1, -1 do
            if a[i] ~= b[i] then return a[i] < b[i] end
        end
        return false
    end

    -- a - b, a >= b
    local function subtract(a, b)
        local digits, borrow = {}, 0
        for i = 1, #a do
            local rest = a[i] - (b[i] or 0) - borrow
            borrow = rest < 0 and 1 or 0
            digits[i] = rest + borrow * DIGIT
        end
        return trim(digits)
    end

    -- Quotient and remainder, bit by bit.
    function number.divide(a, b)
        local quotient, rest = {}, {}
        for i = #a, 1, -1 do
            local digit, out = a[i], 0
            for shift = 23, 0, -1 do
                local bit = math.floor(digit / 2 ^ shift) % 2
                rest = number.add(number.add(rest, rest), number.of(bit))
                if not number.less(rest, b) then
                    rest = subtract(rest, b)
                    out = out + 2 ^ shift
                end
            end
            quotient[i] = out
        end
        return trim(quotient), rest
    end

    return number
end

-- Whether a * b < c * d, exactly.
local function product_less(a, b, c, d)
    local x, y = a * b, c * d
    if x < 9e15 and y < 9e15 or x < y * 0.999999999999 or y < x * 0.999999999999 then
        return x < y
    end
    local number = open_number()
    return number.less(number.multiply(number.of(a), number.of(b)),
        number.multiply(number.of(c), number.of(d)))
end
